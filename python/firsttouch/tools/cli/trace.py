"""`firsttouch trace`: record array allocations, or summarize a trace by source line."""

import os
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from _firsttouch_start import rank
from firsttouch.tools.cli import files, interpreter, program, serving, showing, starting
from firsttouch.tools.cli.parser import BadUsageError, Parser
from firsttouch.tools.cli.program import Program

_USAGE = """firsttouch trace [options] script.py | -m module | -c code
           [arguments of the program]
       firsttouch trace --summary trace.ft"""

_DESCRIPTION = """\
Record the array allocations of an unmodified NumPy program: size, order, thread and lifetime, in
a few bytes per event. The program runs as under `python`, on NumPy's own memory.
`firsttouch replay` replays the trace against any allocator.
"""

_EXAMPLES = """\
for example:
  firsttouch trace script.py data.csv           writes trace.ft
  firsttouch trace -o heat.ft -m package.heat
  firsttouch trace -o 'heat-%p.ft' script.py    a file for each process
  firsttouch trace --allocator 'pool()' script.py
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
    given, found = program.parse(_parser(), words, ("-o", "--output", "--allocator", "--json", "--lines"))
    if given.json is not None and not given.summary:
        raise BadUsageError("trace: --json requires --summary; the trace itself is for firsttouch replay")
    if not given.summary:
        files.refuse_trace("trace", found.words[0])
        file = files.checked("trace", _DEFAULT if given.output is None else given.output)
        return _record(given, found, file)
    showing.needs_rich("trace", given.json)
    files.check_json("trace", given.json)
    if files.is_trace(found.words[0]):
        if len(found.words) > 1:
            raise BadUsageError(f"trace: unexpected argument {found.words[1]}: --summary takes one trace")
        files.check_trace("trace", found.words[0])
        return _sum_up(given, found.words[0])
    if given.output is not None:
        file = files.checked("trace", given.output)
        if rank.fields(file):
            raise BadUsageError("trace: --summary takes a single process: omit %p and %r")
        return starting.passed_on(_both(given, found, file))
    given.quiet = True  # say nothing about a file that is not kept
    with tempfile.TemporaryDirectory(prefix="firsttouch-") as folder:
        status = _both(given, found, os.path.join(rank.escape(folder), _DEFAULT))
    return starting.passed_on(status)  # ends this process by the same signal


def _parser() -> Parser:
    parser = Parser("trace", _DESCRIPTION, _USAGE, _EXAMPLES)
    add = parser.add_argument
    add(
        "-o",
        "--output",
        metavar="FILE",
        help=f"file for the trace; %%p stands for the process, %%r for the rank (default: {_DEFAULT})",
    )
    add("--allocator", metavar="EXPRESSION", help="allocator to run the program on (default: NumPy's own)")
    add("--summary", action="store_true", help="summarize large arrays by source line")
    add("--lines", type=program.lines, default=20, metavar="N", help="lines that --summary shows (default: 20)")
    add("--json", metavar="FILE", help="the summary as JSON, - for standard output")
    add("-q", "--quiet", action="store_true", help="print nothing about the trace on standard error")
    return parser


def _record(given: Any, found: Program, file: str) -> int:
    settings = _settings(given, file)
    command = _command()
    starting.become([*command, *found.words], starting.environment(settings, found))


def _both(given: Any, found: Program, pattern: str) -> int:
    settings, file = _settings(given, pattern), rank.fill(pattern)
    before = _version(file)
    status = starting.run_and_wait(_command(), settings, found)
    if _version(file) not in (None, before):
        _sum_up(given, file)
    return status


def _version(file: str) -> tuple[int, int] | None:
    """Tell an older trace, which stays where the program records none, from the program's own."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns


def _settings(given: Any, file: str) -> dict[str, Any]:
    settings: dict[str, Any] = {"trace": file, "quiet": given.quiet}
    if given.allocator is not None:
        given.max_idle = given.decay = None
        settings["allocator"] = serving.checked(given, "trace")
    return settings


def _command() -> list[str]:
    command = interpreter.command("trace")
    interpreter.check(command, "trace")
    return command


def _sum_up(given: Any, file: str) -> int:
    from firsttouch.tools.trace import lines, prices

    try:
        summary = lines.summarize(file, prices.calibrate(prices.huge_page_size()), incomplete=True)
    except (ValueError, OSError) as error:
        raise BadUsageError(f"trace: {file}: {getattr(error, 'strerror', None) or error}") from None
    if given.json is not None:
        showing.save_json("trace", given.json, summary.as_dict())
    if given.json != "-":
        showing.summary(summary, given.lines, sys.stdout)
    return 0
