"""`firsttouch trace`: record array allocations, or summarize a trace by source line."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from firsttouch._internal import units
from firsttouch.tools.cli import files, output, program
from firsttouch.tools.cli.output import Output
from firsttouch.tools.cli.parser import BadUsageError, Parser
from firsttouch.tools.cli.program import Program

_USAGE = """firsttouch trace [options] script.py | -m module | -c code
           [arguments of the program]
       firsttouch trace --summary trace.ft"""

_DESCRIPTION = """\
Record the array allocations of an unmodified NumPy program: size, order and lifetime, in
a few bytes per event. The program runs as under `python`, on NumPy's own memory.
"""

_EXAMPLES = """\
for example:
  firsttouch trace script.py data.csv           writes trace.ft
  firsttouch trace -o heat.ft -m package.heat
  firsttouch trace -o 'heat-%p.ft' script.py    a file for each process
  firsttouch trace --summary script.py          large arrays by source line
  firsttouch trace --summary -o heat.ft script.py
  firsttouch trace --summary heat.ft            of an existing trace

Without %p only the started process is recorded, and its children run unrecorded.
Arrays created under firsttouch.use(), in scratch scopes or by the constructors of firsttouch have
handlers of their own and are not recorded.
"""

_DEFAULT = "trace.ft"


def main(words: Sequence[str]) -> int:
    """Check what can be checked, then record a trace or summarize one."""
    given, found = program.parse(_parser(), words, ("-o", "--output", "--lines", *output.WITH_VALUE))
    if any(value is not None for value in (given.json, given.html, given.plot)) and not given.summary:
        raise BadUsageError("trace: --json, --html and --plot are for --summary")
    if not given.summary:
        files.refuse_trace("trace", found.words[0])
        file = files.checked("trace", _DEFAULT if given.output is None else given.output)
        return _record(given, found, file)
    out = output.checked(given, "trace", "numpy", "rich")
    if files.is_trace(found.words[0]):
        if len(found.words) > 1:
            raise BadUsageError(f"trace: unexpected argument {found.words[1]}: --summary takes one trace")
        files.check_trace("trace", found.words[0])
        return _sum_up(found.words[0], given.lines, out)
    if given.output is not None:
        file = files.checked("trace", given.output)
        if files.fields(file):
            raise BadUsageError("trace: --summary takes a single process: omit %p and %r")
        return program.passed_on(_both(given, found, file, out))
    given.quiet = True  # say nothing about a file that is not kept
    with tempfile.TemporaryDirectory(prefix="firsttouch-") as folder:
        status = _both(given, found, os.path.join(files.escape(folder), _DEFAULT), out)
    return program.passed_on(status)  # ends this process by the same signal


def _parser() -> Parser:
    parser = Parser("trace", _DESCRIPTION, _USAGE, _EXAMPLES)
    add = parser.add_argument
    add(
        "-o",
        "--output",
        metavar="FILE",
        help=f"file for the trace; %%p stands for the process, %%r for the rank (default: {_DEFAULT})",
    )
    add("--summary", action="store_true", help="summarize large arrays by source line")
    add("--lines", type=program.lines, default=20, metavar="N", help="lines that --summary shows (default: 20)")
    output.add(parser, plot=True)
    return parser


def _record(given: Any, found: Program, file: str) -> int:
    settings = {"trace": file, "quiet": given.quiet}
    program.become([*_command(), *found.words], program.environment(settings, found))


def _both(given: Any, found: Program, pattern: str, out: Output) -> int:
    file = files.fill(pattern)
    before = files.version(file)
    status = program.run_and_wait(_command(), {"trace": pattern, "quiet": given.quiet}, found)
    if files.version(file) not in (None, before):
        _sum_up(file, given.lines, out)
    return status


def _command() -> list[str]:
    command = program.command("trace")
    program.check(command, "trace")
    return command


def _sum_up(file: str, most: int, out: Output) -> int:
    from firsttouch.tools import advice
    from firsttouch.tools.measuring.report import Page

    try:
        summary = advice.summarize(file)
    except (ValueError, OSError) as error:
        raise BadUsageError(f"trace: {file}: {getattr(error, 'strerror', None) or error}") from None
    said, every = summary.sentences(), summary.all_lines()
    title = f"firsttouch trace --summary {file}"
    out.save(summary.as_dict, Page(title, said, [every], summary.pictures(most)))
    if out.prints and sys.stdout is not None:
        if summary.lines and not out.quiet:
            summary.all_lines(most).show(output.console())
            if len(summary.lines) > most:
                more = units.count(len(summary.lines) - most, "more line")
                print(f"{more}; --lines {len(summary.lines)} shows them all\n")
        for sentence in said:
            print(output.wrapped(sentence, sys.stdout))
    return 0
