"""`firsttouch advise`: estimate from one run what pooled memory would save."""

import os
import shlex
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from _firsttouch_start import rank, speak, units
from firsttouch.tools.cli import files, interpreter, program, showing, starting
from firsttouch.tools.cli.parser import Parser
from firsttouch.tools.cli.program import Program

_USAGE = """firsttouch advise [options] script.py | -m module | -c code
           [arguments of the program]"""

_DESCRIPTION = """\
Run a program once, on NumPy's own memory, and estimate how much time pooled memory would save and
which source lines would benefit most. `firsttouch compare` measures it instead.
"""

_EXAMPLES = """\
for example:
  firsttouch advise script.py data.csv
  firsttouch advise --json advice.json -m package.heat

The estimate counts the page faults of arrays of 64 KiB or more in the started process, at the cost
measured on this machine. Child processes are not included.
"""


def main(words: Sequence[str]) -> int:
    """Run the program, read the trace and print the advice. Returns the program's exit status."""
    given, found = program.parse(_parser(), words, ("--json", "--lines"))
    showing.needs_rich("advise", given.json)
    files.check_json("advise", given.json)
    command = interpreter.command("advise")
    interpreter.check(command, "advise")
    from firsttouch.tools.trace import prices

    found_prices = prices.calibrate(prices.huge_page_size())
    with tempfile.TemporaryDirectory(prefix="firsttouch-") as folder:
        file = os.path.join(folder, "advise.ft")
        status = starting.run_and_wait(command, {"trace": rank.escape(file), "quiet": True, "advise": True}, found)
        if os.path.exists(file):
            _say(given, found, file, found_prices)
        elif not os.path.isdir(folder):
            _tell(f"no advice: the record of the run is gone, as {folder} was removed")
        elif found.can_start:
            _tell(
                "no advice: NumPy, whose arrays are counted, was never imported in the process that was started;"
                " firsttouch compare measures child processes, too, and with --all other memory than NumPy's"
            )
    return starting.passed_on(status)


def _parser() -> Parser:
    parser = Parser("advise", _DESCRIPTION, _USAGE, _EXAMPLES)
    add = parser.add_argument
    add("--lines", type=program.lines, default=10, metavar="N", help="lines to show (default: 10)")
    add("--json", metavar="FILE", help="the advice as JSON, - for standard output")
    return parser


def _tell(text: str) -> None:
    speak.write(sys.__stderr__, showing.wrapped(f"firsttouch: {text}", sys.__stderr__) + "\n")


def _say(given: Any, found: Program, file: str, found_prices: Any) -> None:
    from firsttouch.tools.trace import advice, lines

    try:
        advised = advice.advise(lines.summarize(file, found_prices, incomplete=True))
    except (ValueError, OSError) as error:
        speak.line(f"no advice: the record of the run: {error}")
        return
    if not advised.summary.facts["complete"]:
        speak.line("no advice: the program was killed, or ended by os._exit, and the record of the run is truncated")
        return
    program = shlex.join(found.words)
    if given.json is not None:
        showing.save_json("advise", given.json, {"advice": advised.words(program), **advised.as_dict()})
    if given.json == "-":
        return
    processor = advised.summary.processor
    gaining = [line for line in advised.lines if line.avoidable > 0.001 * processor][: given.lines]
    if sys.stdout is not None:
        sys.stdout.flush()
    _tell(advised.words(program))
    rows = [
        (
            showing.place(line),
            f"{line.count:,}",
            units.size(line.bytes),
            units.seconds(line.avoidable),
            units.share(line.avoidable, processor),
        )
        for line in gaining
    ]
    if rows:
        showing.table(("line", "arrays", "bytes", "would save", "of the time"), rows, sys.stderr)
