"""`firsttouch --info`: the memory configuration of this machine."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

from firsttouch.tools.cli import output
from firsttouch.tools.cli.output import Parser
from firsttouch.tools.measuring import machine

_DESCRIPTION = """\
Show the memory configuration of this machine and process: page sizes, huge
pages, NUMA nodes, the loaded malloc, and memory limits.
"""

_EXAMPLES = """\
for example:
  firsttouch --info
  firsttouch --info --json -
"""


def main(words: Sequence[str]) -> int:
    """Collect the facts, and print or write them."""
    out, facts = output.checked(_parser().parse(words), "--info"), machine.describe()
    if out.prints and not out.quiet:
        print(*(_fold(f"{label:24}", words) for label, words in facts.items()), sep="\n")
    out.save(lambda: facts)
    return 0


def _parser() -> Parser:
    parser = Parser("--info", _DESCRIPTION, "firsttouch --info [options]", _EXAMPLES)
    output.add(parser)
    return parser


def _fold(head: str, value: str) -> str:
    """Wrap a long value, but for paths, into lines that are indented to its beginning."""
    indents: dict[str, Any] = {"initial_indent": head, "subsequent_indent": " " * len(head)}
    return textwrap.fill(value, 80, break_long_words=False, break_on_hyphens=False, **indents)
