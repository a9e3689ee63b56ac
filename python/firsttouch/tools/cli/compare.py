"""`firsttouch compare`: run one program under several allocators and compare their times."""

from __future__ import annotations

import argparse
import os
import re
import select
import shlex
import shutil
import signal
import stat
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from _firsttouch_start import speak
from firsttouch.tools.cli import output, program
from firsttouch.tools.cli.output import Output, Progress
from firsttouch.tools.cli.parser import BadUsageError, Parser

if TYPE_CHECKING:
    from firsttouch.tools.compare.comparison import Outcome
    from firsttouch.tools.compare.trial import DifferentError, FailedError

_USAGE = """firsttouch compare [options] script.py | -m module | -c code | -- command
           [arguments of the program]"""

_DESCRIPTION = """\
Run a program repeatedly under the default allocator, firsttouch's pool and a tuned glibc, in
shuffled rounds, and report which is fastest: a table with confidence intervals, and a conclusion
that may be "no difference". Every run must succeed and print the same output.
"""

_EXAMPLES = """\
for example:
  firsttouch compare script.py data.csv
  firsttouch compare --all script.py         also mimalloc, jemalloc and others
  firsttouch compare --allocator 'pool(decay=30)' --allocator mimalloc script.py
  firsttouch compare --runs 20 --html report.html script.py
  firsttouch compare --budget 5m --prepare 'rm -f cache.bin' script.py
  firsttouch compare -- ./simulation input.txt  any program
  firsttouch compare --ignore-output -- sh pipeline.sh
  zcat data.gz | firsttouch compare script.py   each run reads the same input

options of firsttouch come before the program; everything after it is passed to the program.
"""

_WITH_VALUE = ("-r", "--runs", "-p", "--prepare", "--budget", "--timeout", "--allocator", *output.WITH_VALUE)


def main(words: Sequence[str]) -> int:
    """Check everything that can be checked beforehand, compare, and show the outcome."""
    parser = _parser()
    at = program.own(words, _WITH_VALUE)
    for word in words[:at]:
        if parser.unknown(word) and (advice := program.hint(word, "compare")):
            raise BadUsageError(f"compare: {advice}")
    given = parser.parse(words[:at])
    output.need("compare", "numpy")
    command, python = _command(words[at:])
    if given.runs is not None and given.budget is not None:
        raise BadUsageError("compare: --runs and --budget exclude each other")
    out = output.checked(given, "compare", "rich")
    if not command:
        ways = "give a script, -m module, -c code or -- command"
        raise BadUsageError(f"compare: missing program: {ways} (try firsttouch compare --help)")
    for expression in given.allocator:
        program.checked(expression, "compare")
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)
    return _compare(given, out, words, command, python)


def _parser() -> Parser:
    parser = Parser("compare", _DESCRIPTION, _USAGE, _EXAMPLES)
    add = parser.add_argument
    add("-r", "--runs", metavar="N", type=_runs, help="measured runs of each (default: as --budget allows, at least 5)")
    add("--budget", metavar="TIME", type=_seconds, help="approximate total time: 90s, 5m, 1h (default: 1m)")
    add(
        "-p",
        "--prepare",
        metavar="COMMAND",
        help="shell command to run before every run (not timed); its children may survive a SIGKILL of compare",
    )
    add("--timeout", metavar="TIME", type=_seconds, help="stop a run that takes longer")
    add("-i", "--ignore-output", action="store_true", help="do not compare the output of the runs")
    add(
        "--allocator",
        metavar="EXPRESSION",
        action="append",
        default=[],
        help="another allocator; repeatable",
    )
    add(
        "--all",
        action="store_true",
        help="also compare a pool on base pages, mimalloc, jemalloc and all preloadable mallocs",
    )
    output.add(parser, plot=True)
    return parser


def _command(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the whole command, and its part that is the interpreter, which is empty after --."""
    if words[:1] == ["--"]:
        if words[1:] and shutil.which(words[1]) is None:
            raise BadUsageError(f"compare: no command {words[1]}; omit -- for a Python script")
        return list(words[1:]), []
    if words and words[0] in _UNITS and not os.path.exists(words[0]):
        raise BadUsageError(f"compare: no program {words[0]}; write a duration as one word, as in 5m")
    _, found = program.split(words, (), "compare")
    if found is None:
        return [], []
    if not found.can_start:
        raise BadUsageError(f"compare: no program {found.words[0]} here")
    python = program.command("compare")
    program.check(python, "compare")
    return [*python, *found.words], python


def _runs(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"takes a number from 1 to 10000, not {text!r}")
    return int(text)


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "": 1.0}


def _seconds(text: str) -> float:
    """Parse a duration such as `90`, `90s`, `5m`, `1.5h` or `1h30m`."""
    parts = re.findall(r"(\d+(?:\.\d*)?|\.\d+)\s*(ms|min|[smh]?)\s*", text.strip().lower())
    whole = "".join(f"{number}{unit}" for number, unit in parts)
    total = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not parts or whole != "".join(text.lower().split()) or total <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration: give seconds, or a value like 90s, 5m or 1h30m")
    return total


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _compare(
    given: argparse.Namespace, out: Output, words: Sequence[str], command: list[str], python: list[str]
) -> int:
    from firsttouch.tools.compare.comparison import compare
    from firsttouch.tools.compare.trial import DifferentError, FailedError, Trial
    from firsttouch.tools.measuring import contenders

    chosen, absent = contenders.chosen(given.all, given.allocator, any_program=not python)
    program = command[len(python) :]
    with tempfile.TemporaryDirectory(prefix="firsttouch-") as folder, Progress("comparing", out.quiet) as bar:
        stdin = _standard_input(Path(folder))
        # With its arguments: an option of firsttouch behind the program went to the program.
        shown = textwrap.shorten(shlex.join(program), 60, placeholder=" ...")
        limits = (given.timeout, given.prepare, given.ignore_output)
        trial = Trial(command, Path(folder), stdin, *limits, bool(python), shown)
        try:
            outcome = compare(trial, chosen, given.runs, given.budget, bar)
        except (FailedError, DifferentError) as error:
            bar.close()
            _failure(error, stdin)
            return 1
        except KeyboardInterrupt:
            bar.close()  # a partial table would mislead
            raise KeyboardInterrupt(f"interrupted at {100 * bar.part:.0f} %; no results were written") from None
    hows = {row.contender.name: contenders.how(row.contender, program, python) for row in outcome.rows[2:]}
    _show(outcome, out, f"firsttouch compare {shlex.join(words)}", hows, absent)
    return 0


_PATIENCE = 2.0


def _standard_input(folder: Path) -> str:
    """Copy our standard input to a file, read once; return the null device if it is a terminal or closed."""
    try:
        kind = os.fstat(0).st_mode
    except OSError:  # it is closed
        return os.devnull
    if os.isatty(0):
        return os.devnull
    if stat.S_ISCHR(kind):
        link = "/proc/self/fd/0" if sys.platform == "linux" else ""
        return os.readlink(link) if os.path.exists(link) else os.devnull
    # A pipe may never be written to; on Windows only a socket can be waited for.
    if not stat.S_ISREG(kind) and os.name != "nt" and not select.select([0], [], [], _PATIENCE)[0]:
        speak.line("compare: waiting for the end of standard input, which every run reads; use < /dev/null for none")
    kept = folder / "stdin"
    with open(0, "rb", closefd=False) as incoming, kept.open("wb") as file:
        shutil.copyfileobj(incoming, file)
    return str(kept)


def _failure(error: FailedError | DifferentError, stdin: str) -> None:
    """Report why no comparison was made, after what the program itself had printed."""
    said = getattr(error, "said", "")
    if said:
        speak.write(sys.__stderr__, said.rstrip("\n") + "\n")
    hint = ""
    if "EOF" in said and stdin == os.devnull:
        hint = "; its standard input is empty: redirect it, as in firsttouch compare script.py < input.txt"
    speak.line(f"compare: {error}{hint}; no comparison was made")


def _show(outcome: Outcome, out: Output, words: str, hows: dict[str, str], absent: list[str]) -> None:
    """Print, write and draw the outcome, as requested."""
    from firsttouch.tools.compare import report
    from firsttouch.tools.measuring.machine import describe
    from firsttouch.tools.measuring.report import Page

    advice, notes = report.judged(outcome), report.notes(outcome, absent)
    repeat = {"All of it": words} | {f"Once, under {name}": how for name, how in hows.items()}
    page = Page(words, advice.sentences, [report.table(outcome)], [report.picture(outcome)], notes, repeat)
    out.show(page)
    headline = advice.sentences[0].partition(" is faster here")[0]
    if out.prints and headline in hows:
        print(f"  {hows[headline]}")
    about = {"command": words, "machine": describe(), "notes": notes, "absent": absent}
    out.save(lambda: about | report.data(outcome), page)
