"""`firsttouch --info`: the memory configuration of this machine."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path

from firsttouch.tools.cli import output
from firsttouch.tools.cli.parser import Parser
from firsttouch.tools.measuring import machine

_DESCRIPTION = """\
Show the memory configuration of this machine and process: page sizes, huge pages, NUMA nodes,
kernel features, the loaded malloc, and memory limits. Conclusions for arrays follow at the end.
"""

_EXAMPLES = """\
for example:
  firsttouch --info
  firsttouch --info --json -
  MALLOC_TRIM_THRESHOLD_=65536 firsttouch --info      as a program would see it
"""


def main(words: Sequence[str]) -> int:
    """Collect the figures, and print or write them."""
    out = output.checked(_parser().parse(words), "--info")
    found, meaning = look()
    if out.prints:
        print(text(found, meaning, quiet=out.quiet), end="")
    from firsttouch.tools.measuring.report import Page, Table

    tables = [Table(topic, ("", ""), list(machine.shown(topic, facts))) for topic, facts in found.items()]
    out.save(lambda: found | {"meaning": meaning}, Page("firsttouch --info", meaning, tables))
    return 0


def _parser() -> Parser:
    parser = Parser("--info", _DESCRIPTION, "firsttouch --info [options]", _EXAMPLES)
    output.add(parser)
    return parser


def look(root: Path = machine.ROOT) -> tuple[dict[str, machine.Facts], list[str]]:
    """Return the facts by topic, and the conclusions."""
    found = machine.look(root)
    return found, machine.meaning(found, root) or ["no problems found"]


def text(found: Mapping[str, machine.Facts], meaning: Sequence[str], quiet: bool = False) -> str:
    """Format a block for each topic, then the conclusions."""
    blocks = [
        "\n".join([topic, *(_fold(f"  {label:22}  ", words) for label, words in machine.shown(topic, facts))])
        for topic, facts in found.items()
    ]
    said = "\n".join(["what it means", *(_fold("  - ", sentence) for sentence in meaning)])
    return "\n\n".join([*([] if quiet else blocks), said]) + "\n"


def _fold(head: str, value: str) -> str:
    """Wrap a long value into lines that are indented to its beginning."""
    return textwrap.fill(value, 80, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False)
