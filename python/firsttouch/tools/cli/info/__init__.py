"""`firsttouch info`: the memory configuration of this machine, one file per topic."""

import json
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from _firsttouch_start import speak
from firsttouch.tools.cli import files
from firsttouch.tools.cli.info import cgroup, hugepages, kernel, libc, limits, machine, numa, pages
from firsttouch.tools.cli.parser import BadUsageError, Parser

#: In the order of the output. Each has look(root), rows(found) and meaning(found).
TOPICS: dict[str, ModuleType] = {
    "machine": machine,
    "pages": pages,
    "huge page pools": hugepages,
    "numa": numa,
    "kernel": kernel,
    "malloc": libc,
    "cgroup": cgroup,
    "limits": limits,
}

_OF_SYS = "much of the pages, huge pages and NUMA nodes"

_DESCRIPTION = """\
Show the memory configuration of this machine and process: page sizes, huge pages, NUMA nodes,
kernel features, the loaded malloc, and memory limits. Conclusions for arrays follow at the end.
"""

_EXAMPLES = """\
for example:
  firsttouch info
  firsttouch info --json -
  MALLOC_TRIM_THRESHOLD_=65536 firsttouch info      as a program would see it
"""


def main(words: Sequence[str]) -> int:
    """Collect the figures, and print or write them."""
    parser = Parser("info", _DESCRIPTION, "firsttouch info [options]", _EXAMPLES)
    parser.add_argument("--json", metavar="FILE", help="write JSON instead; - for standard output")
    parser.add_argument("-q", "--quiet", action="store_true", help="print only the conclusions")
    given = parser.parse(words)
    files.check_json("info", given.json)
    found = look()
    if given.json:
        _save(found, given.json)
    else:
        print(text(found, quiet=given.quiet), end="")
    return 0


def look(root: Path = Path("/")) -> dict[str, Any]:
    """Collect the figures of every topic; None stands for what this machine does not report."""
    found: dict[str, Any] = {_key(name): topic.look(root) for name, topic in TOPICS.items()}
    found["meaning"] = _unseen(root)
    for name, topic in TOPICS.items():
        found["meaning"] += topic.meaning(found[_key(name)])
    return found


def _key(topic: str) -> str:
    return topic.replace(" ", "_").replace("-", "_")


def _unseen(root: Path) -> list[str]:
    """Report missing kernel files: what is unknown must not read as if there were no problem."""
    return [
        f"/{folder} is missing or not readable: {lacks} is not known"
        for folder, lacks in (("proc", "much of the memory, the limits and the kernel's settings"), ("sys", _OF_SYS))
        if sys.platform == "linux" and not _readable(root / folder)
    ]


def _readable(folder: Path) -> bool:
    try:
        return any(folder.iterdir())
    except OSError:
        return False


def text(found: dict[str, Any], quiet: bool = False) -> str:
    """Format a block for each topic, then the conclusions."""
    blocks = []
    for name, topic in TOPICS.items():
        rows = topic.rows(found[_key(name)])
        blocks.append("\n".join([name, *(_fold(f"  {label:19}  ", value) for label, value in rows)]))
    said = found["meaning"] or ["no problems found"]
    meaning = "\n".join(["what it means", *(_fold("  - ", sentence) for sentence in said)])
    return "\n\n".join([*([] if quiet else blocks), meaning]) + "\n"


def _fold(head: str, value: str) -> str:
    """Wrap a long value into lines that are indented to its beginning."""
    return textwrap.fill(value, 80, initial_indent=head, subsequent_indent=" " * len(head), break_on_hyphens=False)


def _save(found: dict[str, Any], name: str) -> None:
    content = json.dumps(found, indent=2) + "\n"
    if name == "-":
        print(content, end="")
        return
    try:
        Path(name).write_text(content, encoding="utf-8")
    except OSError as error:
        raise BadUsageError(f"info: cannot write {name}: {speak.reason(error)}") from None
