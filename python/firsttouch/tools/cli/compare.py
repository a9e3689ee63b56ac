"""`firsttouch compare`: run one program under several allocators and compare their times."""

from __future__ import annotations

import argparse
import os
import shlex
import signal
import sys
import tempfile
import textwrap
from collections.abc import Sequence
from pathlib import Path

from _firsttouch_start import speak
from firsttouch.tools.cli import output, program
from firsttouch.tools.cli.output import Parser, Progress

_USAGE = """firsttouch compare [options] script.py | -m module | -c code | program
           [arguments of the program]"""

_DESCRIPTION = """\
Run a program repeatedly under the default allocator, firsttouch's pool and a
tuned glibc, in shuffled rounds, and report which is fastest: a table with
confidence intervals, and a conclusion that may be "no difference". Every run
must succeed and print the same output.
"""

_EXAMPLES = """\
for example:
  firsttouch compare script.py data.csv
  firsttouch compare --all script.py         also mimalloc, jemalloc and others
  firsttouch compare --allocator 'pool(decay=30)' --allocator mimalloc script.py
  firsttouch compare --runs 50 --plot runs.png --html runs.html script.py
  firsttouch compare ./simulation input.txt     a program in C, C++, ...
  firsttouch compare --ignore-output sh pipeline.sh
  firsttouch compare script.py < input.txt      each run reads the same input

options of firsttouch come before the program; everything after it is passed to
the program.
"""


def main(words: Sequence[str]) -> int:
    """Check everything that can be checked beforehand, compare, and show the outcome."""
    given, found = program.parse(_parser(), words)
    out = output.checked(given, "compare", "numpy", "rich")
    for expression in given.allocator:
        program.checked(expression, "compare")
    is_python = found.executable is None
    command = program.python(found, "compare") if is_python else list(found.words)
    for number in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)

    from firsttouch.tools import verdict
    from firsttouch.tools.comparison import FailedError, Trial, compare
    from firsttouch.tools.measuring import contenders
    from firsttouch.tools.measuring.machine import describe

    chosen, absent = contenders.chosen(given.all, given.allocator, any_program=not is_python)
    stdin = os.path.realpath("/dev/stdin")  # a file is opened anew for each run
    stdin = stdin if os.path.isfile(stdin) else os.devnull
    try:
        with tempfile.TemporaryDirectory(prefix="firsttouch-") as folder:
            # With its arguments: an option of firsttouch behind the program went to the program.
            shown = textwrap.shorten(shlex.join(found.words), 60, placeholder=" ...")
            trial = Trial(command, Path(folder), stdin, given.ignore_output, is_python, shown)
            outcome = compare(trial, chosen, given.runs, Progress("comparing", out.quiet))
    except FailedError as error:
        if error.said:
            speak.write(sys.__stderr__, error.said.rstrip("\n") + "\n")
        hint = ""
        if "EOF" in error.said and stdin == os.devnull:
            hint = "; its standard input is empty: give it a file, as in firsttouch compare script.py < input.txt"
        speak.line(f"compare: {error}{hint}; no comparison was made")
        return 1
    except KeyboardInterrupt:  # a partial table would mislead
        raise KeyboardInterrupt("interrupted; no results were written") from None
    hows = {row.contender.name: contenders.how(row.contender, found.words, is_python) for row in outcome.rows[2:]}
    advice, notes = verdict.judged(outcome), verdict.notes(outcome, absent)
    out.show([verdict.table(outcome)], notes, advice.sentences)
    if out.prints and advice.faster:
        print(f"  {hows[advice.faster[0]]}")
    about = {"command": f"firsttouch compare {shlex.join(words)}", "machine": describe(), "notes": notes}
    about |= {"absent": absent, "repeat": hows}
    out.save(lambda: about | verdict.data(outcome), verdict.picture(outcome))
    return 0


def _parser() -> Parser:
    parser = Parser("compare", _DESCRIPTION, _USAGE, _EXAMPLES)
    add = parser.add_argument
    add("--runs", metavar="N", type=_runs, help="measured runs of each (default: what a minute allows, at least 5)")
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
    output.add(parser, plot=True, html=True)
    return parser


def _runs(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 10_000:
        raise argparse.ArgumentTypeError(f"takes a number from 1 to 10000, not {text!r}")
    return int(text)
