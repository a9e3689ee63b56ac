"""`firsttouch trace`: record the arrays and large buffers of a program."""

from __future__ import annotations

from collections.abc import Sequence

from firsttouch.tools.cli import files, program
from firsttouch.tools.cli.parser import Parser

_USAGE = """firsttouch trace [options] script.py | -m module | -c code
           [arguments of the program]"""

_DESCRIPTION = """\
Record the arrays of an unmodified NumPy program, and the buffers of its bytes,
lists and the like, from 64 KiB on: size, order and lifetime, in 40 bytes per
event. The program runs as under `python`, on NumPy's own memory.
"""

_EXAMPLES = """\
for example:
  firsttouch trace script.py data.csv           writes trace.ft
  firsttouch trace -o heat.ft -m package.heat
  firsttouch advise heat.ft                     reads it

Only the started process is recorded, and its children run unrecorded. Arrays
created under firsttouch.use(), in scratch scopes or by the constructors of
firsttouch have handlers of their own and are not recorded.
"""

_DEFAULT = "trace.ft"


def main(words: Sequence[str]) -> int:
    """Check what can be checked, then become the program."""
    given, found = program.parse(_parser(), words, ("-o", "--output"))
    settings = {"trace": files.checked("trace", "-o", given.output), "quiet": given.quiet}
    program.start(program.python(found, "trace"), settings)


def _parser() -> Parser:
    parser = Parser("trace", _DESCRIPTION, _USAGE, _EXAMPLES)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default=_DEFAULT,
        help=f"file for the trace (default: {_DEFAULT})",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing about the file")
    return parser
