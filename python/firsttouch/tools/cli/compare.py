"""`firsttouch compare`: one program under several allocators, and which of them suits it."""

import argparse
import os
import re
import shutil
import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from firsttouch.tools.cli import interpreter, output, program, serving, start_file
from firsttouch.tools.cli.parser import Parser
from firsttouch.tools.cli.usage import BadUsageError

_USAGE = "firsttouch compare [options] script.py | -m module | -c code | -- command  [arguments of the program]"

_DESCRIPTION = """\
Run a program again and again under NumPy's default, firsttouch's pool and a tuned glibc, in turn
and in shuffled order, and say which of them suits it: a table with intervals, and a sentence that
may well be "no difference". Every run has to end well and to print the same.
"""

_EXAMPLES = """\
for example:
  firsttouch compare script.py data.csv
  firsttouch compare --all script.py                 also mimalloc, jemalloc, tcmalloc, ...
  firsttouch compare --allocator 'pool(decay=30)' --allocator mimalloc -m package.module
  firsttouch compare --runs 20 --html report.html script.py
  firsttouch compare --budget 5m --prepare 'rm -f cache.bin' script.py
  firsttouch compare --ignore-output -- sh pipeline.sh
  zcat data.gz | firsttouch compare script.py        each run reads the same input

options of firsttouch come before the program; all that follows it is the program's own.
"""

_WITH_VALUE = ("--runs", "--warmup", "--prepare", "--budget", "--timeout", "--allocator", *output.WITH_VALUE)


def main(words: Sequence[str]) -> int:
    """Check everything that can be checked, compare, and show what was found."""
    if not hasattr(os, "posix_spawnp"):
        raise BadUsageError("compare: this system does not tell what a program used; Linux does")
    parser = _parser()
    at = program.own(words, (*_WITH_VALUE, "-r", "-w", "-p"))
    for word in words[:at]:
        if parser.unknown(word) and (advice := program.hint(word, "compare")):
            raise BadUsageError(f"compare: {advice}")
    given = parser.parse(words[:at])
    output.need("compare", "numpy")
    command, python = _command(words[at:])
    options = _options(given)
    out = output.checked("compare", given)
    if not command:
        raise BadUsageError("compare: which program? A script, -m module, -c code or -- command (try --help)")
    for expression in given.allocator:
        serving.tried_elsewhere("compare", expression)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)
    return _compare(given, options, out, list(words), command, python)


def _parser() -> Parser:
    parser = Parser("compare", _DESCRIPTION, _USAGE, _EXAMPLES)
    add = parser.add_argument
    add("-r", "--runs", metavar="N", help="counted runs of each (default: what --budget allows, 5 at least)")
    add("--budget", metavar="TIME", help="about how long it may take: 90s, 5m, 1h (default: 1m)")
    add("-w", "--warmup", metavar="N", default="1", help="uncounted runs of each before, 1 at least (default: 1)")
    add("-p", "--prepare", metavar="COMMAND", help="for the shell, before every run; its time is not counted")
    add("--timeout", metavar="TIME", help="end a run that takes longer")
    add("-i", "--ignore-output", action="store_true", help="do not compare what the runs print")
    add("--allocator", metavar="EXPRESSION", action="append", default=[], help="one more, such as mimalloc; repeatable")
    add("--all", action="store_true", help="also huge pages, mimalloc, jemalloc, and every malloc found to preload")
    output.add(parser)
    return parser


def _command(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The whole command, and what of it is the interpreter: none behind --."""
    if words[:1] == ["--"]:
        if words[1:] and shutil.which(words[1]) is None:
            raise BadUsageError(f"compare: no command {words[1]}; a Python script goes without --")
        return list(words[1:]), []
    _, found = program.split(words, (), "compare")
    if found is None:
        return [], []
    if not found.can_start:
        if re.fullmatch("(ms|[smh]|min)", found.words[0]):
            raise BadUsageError(f"compare: no program {found.words[0]}; a time is one word, as in 5m")
        raise BadUsageError(f"compare: no program {found.words[0]} here")
    python = interpreter.command("compare")
    start_file.check(python, "compare")
    return [*python, *found.words], python


def _options(given: argparse.Namespace) -> dict[str, Any]:
    """Numbers and times, as they were meant."""
    if given.runs is not None and given.budget is not None:
        raise BadUsageError("compare: --runs says how often, --budget how long: give one of them")
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
    from firsttouch.tools.compare.schedule import seconds

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
    from firsttouch.tools.cli.compare_shown import Asked, Teller, failure, show
    from firsttouch.tools.compare import candidates, standard_input
    from firsttouch.tools.compare.comparison import Wish, compare
    from firsttouch.tools.compare.trial import DifferentError, FailedError, Trial

    contenders, absent = candidates.chosen(given.all, given.allocator)
    with tempfile.TemporaryDirectory(prefix="firsttouch-") as folder, Teller(out) as teller:
        stdin = standard_input.source(Path(folder), teller.waiting)
        trial = Trial(command, Path(folder), stdin, options["timeout"], given.prepare, given.ignore_output)
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
