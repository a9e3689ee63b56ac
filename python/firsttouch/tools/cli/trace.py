"""`firsttouch trace`: sum up the arrays and large buffers of a program by line."""

from __future__ import annotations

from collections.abc import Sequence

from firsttouch._firsttouch import SMALL_LIMIT
from firsttouch.tools.cli import files, program
from firsttouch.tools.cli.output import Parser

_USAGE = """firsttouch trace [options] script.py | -m module | -c code
           [arguments of the program]"""

_DESCRIPTION = f"""\
Trace the arrays of an unmodified NumPy program, and the buffers of its bytes,
lists and the like, from {SMALL_LIMIT >> 10} KiB on: how many each line makes, of how many bytes,
how long they live, and what pooled memory would save of their cost. The program
runs as under `python`, on NumPy's own memory.
"""

_EXAMPLES = """\
for example:
  firsttouch trace script.py data.csv           writes trace.ft
  firsttouch trace -o heat.ft -m package.heat
  firsttouch advise heat.ft                     reads it; it is JSON

It is written at the end of the program. Only the started process is traced, and
not its children. Arrays created under firsttouch.use(), in scratch scopes or by
the constructors of firsttouch have handlers of their own and are not traced.
"""


def main(words: Sequence[str]) -> int:
    """Check what can be checked, then become the program."""
    given, found = program.parse(_parser(), words)
    settings = {"trace": files.checked("trace", "-o", given.output), "quiet": given.quiet}
    program.start(program.python(found, "trace"), settings)


def _parser() -> Parser:
    parser = Parser("trace", _DESCRIPTION, _USAGE, _EXAMPLES)
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="trace.ft",
        help="file for the trace (default: %(default)s)",
    )
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing about the file")
    return parser
