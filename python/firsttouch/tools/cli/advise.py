"""`firsttouch advise`: estimate from one run what pooled memory would save."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING

from _firsttouch_start import speak
from firsttouch.tools.cli import files, output, program
from firsttouch.tools.cli.output import Output
from firsttouch.tools.cli.parser import BadUsageError, Parser

if TYPE_CHECKING:
    from firsttouch.tools.advice import Summary

_USAGE = """firsttouch advise [options] script.py | -m module | -c code
           [arguments of the program]
       firsttouch advise [options] trace.ft"""

_DESCRIPTION = """\
Run a program once, on NumPy's own memory, and estimate how much time pooled
memory would save and which source lines would benefit most. `firsttouch
compare` measures it instead.
"""

_EXAMPLES = """\
for example:
  firsttouch advise script.py data.csv
  firsttouch advise --json advice.json -m package.heat
  firsttouch advise --html advice.html script.py
  firsttouch advise heat.ft         a file of firsttouch trace

The estimate is that of the memory that arrays, bytes, lists and the like of 64
KiB or more take fresh from the system in the started process, at the cost
measured on this machine. Child processes are not included.
"""


def main(words: Sequence[str]) -> int:
    """Run the program, read the trace and print the advice. Returns the program's exit status."""
    given, found = program.parse(_parser(), words, output.WITH_VALUE)
    if sys.platform == "win32":
        estimate = "what pooled memory saves is estimated for glibc, which Windows does not have"
        raise BadUsageError(f"advise: {estimate}; firsttouch compare measures it")
    out = output.checked(given, "advise", "numpy", "rich")
    if files.is_trace(found.words[0]):
        return _of_trace(found.words, out)
    command = program.python(found, "advise")
    from firsttouch.tools import advice

    with tempfile.TemporaryDirectory(prefix="firsttouch-") as folder:
        file = os.path.join(folder, "advise.ft")
        settings = {"trace": file, "quiet": True, "advise": True}
        status = program.wait_for(lambda: program.start(command, settings))
        if os.path.exists(file):
            try:
                summary = advice.summarize(file)
            except (ValueError, OSError) as error:
                speak.line(f"no advice: the record of the run: {error}")
            else:
                _say(summary, shlex.join(found.words), out)
        else:
            speak.line(
                "no advice: NumPy was never imported in the process that was started;"
                " firsttouch compare measures child processes, too, and with --all other memory than NumPy's"
            )
    return program.passed_on(status)


def _of_trace(words: Sequence[str], out: Output) -> int:
    from firsttouch.tools import advice

    if len(words) > 1:
        raise BadUsageError(f"advise: unexpected argument {words[1]}: it takes one trace")
    try:
        summary = advice.summarize(words[0])
    except (ValueError, OSError) as error:
        raise BadUsageError(f"advise: {words[0]}: {speak.reason(error)}") from None
    _say(summary, "", out)
    return 0


def _parser() -> Parser:
    parser = Parser("advise", _DESCRIPTION, _USAGE, _EXAMPLES)
    output.add(parser, html=True)
    return parser


def _say(summary: Summary, program: str, out: Output) -> None:
    if not summary.facts["complete"]:
        speak.line("no advice: the program was killed, or ended by os._exit, and the record of the run is truncated")
        return
    if sys.stdout is not None:
        sys.stdout.flush()
    said, table = summary.words(program), summary.gaining_lines()
    out.page([table] if table.rows else [], [], [said])
    if out.prints and sys.stderr is not None:
        screen = output.console(sys.stderr)
        screen.print(f"firsttouch: {said}")
        if table.rows and not out.quiet:
            table.show(screen)
    out.save(lambda: {"advice": said, **summary.as_dict()})
