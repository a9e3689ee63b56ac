"""`firsttouch compare`: run one program under several allocators and compare their times."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
import signal
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, NoReturn, Self

from _firsttouch_start import speak, units
from firsttouch.tools.cli import output, program
from firsttouch.tools.cli.output import Output, Progress
from firsttouch.tools.cli.parser import BadUsageError, Parser

if TYPE_CHECKING:
    from firsttouch.tools.compare.comparison import Outcome, Schedule
    from firsttouch.tools.compare.trial import DifferentError, FailedError
    from firsttouch.tools.measuring.contenders import Contender

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

_WITH_VALUE = ("--runs", "--warmup", "--prepare", "--budget", "--timeout", "--allocator", *output.WITH_VALUE)


def main(words: Sequence[str]) -> int:
    """Check everything that can be checked beforehand, compare, and show the outcome."""
    if not hasattr(os, "posix_spawnp"):
        raise BadUsageError("compare: cannot measure what a program used on this system; Linux is needed")
    parser = _parser()
    at = program.own(words, (*_WITH_VALUE, "-r", "-w", "-p"))
    for word in words[:at]:
        if parser.unknown(word) and (advice := program.hint(word, "compare")):
            raise BadUsageError(f"compare: {advice}")
    given = parser.parse(words[:at])
    output.need("compare", "numpy")
    command, python = _command(words[at:])
    options = _options(given)
    out = output.checked(given, "compare", "rich")
    if not command:
        ways = "give a script, -m module, -c code or -- command"
        raise BadUsageError(f"compare: missing program: {ways} (try firsttouch compare --help)")
    for expression in given.allocator:
        program.checked(expression, "compare")
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)
    return _compare(given, options, out, list(words), command, python)


def _parser() -> Parser:
    parser = Parser("compare", _DESCRIPTION, _USAGE, _EXAMPLES)
    add = parser.add_argument
    add("-r", "--runs", metavar="N", help="measured runs of each contender (default: as --budget allows, at least 5)")
    add("--budget", metavar="TIME", help="approximate total time: 90s, 5m, 1h (default: 1m)")
    add("-w", "--warmup", metavar="N", default="1", help="warm-up runs of each contender, at least 1 (default: 1)")
    add(
        "-p",
        "--prepare",
        metavar="COMMAND",
        help="shell command to run before every run (not timed); its children may survive a SIGKILL of compare",
    )
    add("--timeout", metavar="TIME", help="stop a run that takes longer")
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
    _, found = program.split(words, (), "compare")
    if found is None:
        return [], []
    if not found.can_start:
        if re.fullmatch("(ms|[smh]|min)", found.words[0]):
            raise BadUsageError(f"compare: no program {found.words[0]}; write a duration as one word, as in 5m")
        raise BadUsageError(f"compare: no program {found.words[0]} here")
    python = program.command("compare")
    program.check(python, "compare")
    return [*python, *found.words], python


def _options(given: argparse.Namespace) -> dict[str, Any]:
    """Return numbers and durations, parsed."""
    if given.runs is not None and given.budget is not None:
        raise BadUsageError("compare: --runs and --budget exclude each other")
    return {
        "runs": _number("--runs", given.runs),
        "warmup": _number("--warmup", given.warmup),
        "budget": _time("--budget", given.budget),
        "timeout": _time("--timeout", given.timeout),
    }


def _number(option: str, text: str | None) -> int | None:
    if text is not None and (not text.isdecimal() or not 1 <= int(text) <= 10_000):
        raise BadUsageError(f"compare: {option} takes a number from 1 to 10000, not {text!r}")
    return None if text is None else int(text)


def _time(option: str, text: str | None) -> float | None:
    from firsttouch.tools.compare.comparison import seconds

    try:
        return None if text is None else seconds(text)
    except ValueError as error:
        raise BadUsageError(f"compare: {option}: {error}") from None


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt


def _compare(
    given: argparse.Namespace,
    options: dict[str, Any],
    out: output.Output,
    words: list[str],
    command: list[str],
    python: list[str],
) -> int:
    from firsttouch.tools.compare import candidates
    from firsttouch.tools.compare.comparison import Wish, compare
    from firsttouch.tools.compare.trial import DifferentError, FailedError, Trial, source

    contenders, absent = candidates.chosen(given.all, given.allocator, any_program=not python)
    with tempfile.TemporaryDirectory(prefix="firsttouch-") as folder, Teller(out, command[len(python) :]) as teller:
        stdin = source(Path(folder), teller.waiting)
        trial = Trial(
            command, Path(folder), stdin, options["timeout"], given.prepare, given.ignore_output, bool(python)
        )
        wish = Wish(options["runs"], options["budget"], options["warmup"])
        try:
            outcome = compare(trial, contenders, wish, teller)
        except (FailedError, DifferentError) as error:
            teller.close()
            failure(error, stdin)
            return 1
        except KeyboardInterrupt:
            teller.close()
            raise KeyboardInterrupt(teller.interrupted()) from None
    show(outcome, out, Asked(words, command[len(python) :], python, absent))
    return 0


@dataclass(frozen=True)
class Asked:
    """The arguments, the command that they stand for, and the libraries that are not installed."""

    words: Sequence[str]
    program: Sequence[str]
    python: Sequence[str]
    absent: Sequence[str]


class Teller:
    """Reports the plan and the progress on standard error."""

    def __init__(self, out: Output, program: Sequence[str]) -> None:
        self._bar = Progress("the first run", out.quiet)
        self._program = textwrap.shorten(shlex.join(program), 60, placeholder=" ...")
        self._plan: Schedule | None = None
        self._part = 0.0

    def __enter__(self) -> Self:
        self._bar.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Remove the progress bar."""
        self._bar.__exit__(None, None, None)

    def waiting(self) -> None:
        """Report that standard input is a pipe without data."""
        speak.line("compare: waiting for the end of standard input, which every run reads; use < /dev/null for none")

    def planned(self, one_run: float, plan: Schedule, contenders: Sequence[Contender]) -> None:
        """Report the number of runs, and about how long they take."""
        self._plan = plan
        names = units.listed([f"{contenders[0].name} (twice)", *(contender.name for contender in contenders[2:])])
        # With its arguments: an option of firsttouch behind the program went to the program.
        self._bar.say(f"One run of {self._program} takes {units.seconds(one_run)}; to be compared: {names}.")
        early = "" if plan.fixed else ", fewer if the figures converge earlier"
        fewest = f" That is more than the {units.seconds(plan.budget)} allowed, but fewer would allow no conclusion."
        over = fewest if plan.over else ""
        self._bar.say(f"{units.count(plan.rounds, 'run')} of each, about {units.seconds(plan.expected)}{early}.{over}")

    def done(self, part: float) -> None:
        """Set the completed fraction."""
        self._part = part
        self._bar.done(part, "comparing")

    def interrupted(self) -> str:
        """Return the message for an interruption; a partial table would mislead."""
        return f"interrupted at {100 * self._part:.0f} %; no results were written"


def failure(error: FailedError | DifferentError, stdin: str) -> None:
    """Report why no comparison was made, after what the program itself had printed."""
    said = getattr(error, "said", "")
    if said:
        speak.write(sys.__stderr__, said.rstrip("\n") + "\n")
    hint = ""
    if "EOF" in said and stdin == os.devnull:
        hint = "; its standard input is empty: redirect it, as in firsttouch compare script.py < input.txt"
    speak.line(f"compare: {error}{hint}; no comparison was made")


def show(outcome: Outcome, out: Output, asked: Asked) -> None:
    """Print, write and draw the outcome, as requested."""
    from firsttouch.tools.compare import candidates, report
    from firsttouch.tools.measuring.machine import describe
    from firsttouch.tools.measuring.report import Page, say

    advice, table, machine = report.judged(outcome), report.table(outcome), describe()
    wanted = out.json or out.html or not out.quiet
    notes = report.notes(outcome, asked.absent, report.loading(outcome) if wanted else None)
    hows = {row.contender.name: candidates.how(row.contender, asked.program, asked.python) for row in outcome.rows[2:]}
    if out.prints:
        console = output.console(width=80)
        if not out.quiet:
            table.show(console)
            for note in notes:
                say(note, console, "- ")
            console.print()
        for sentence in advice.sentences:
            say(sentence, console, style="bold")
        for name in advice.faster[:1]:
            console.print(f"  {hows[name]}", soft_wrap=True)
    words = f"firsttouch compare {shlex.join(asked.words)}"
    about = {"command": [*asked.python, *asked.program], "machine": machine, "notes": notes, "absent": asked.absent}
    page = Page(
        title=words,
        when=f"{outcome.started}, {outcome.seconds:.0f} s on {os.uname().nodename}",
        lead=advice.sentences,
        tables=[table],
        pictures=[report.picture(outcome)],
        notes=notes,
        repeat={"All of it": words} | {f"Once, under {name}": how for name, how in hows.items()},
        machine=machine,
    )
    out.save(lambda: about | report.data(outcome), lambda: page, lambda: [report.picture(outcome)])
