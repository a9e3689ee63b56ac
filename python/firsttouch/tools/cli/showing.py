"""Tables of traces on a terminal, and the same as JSON."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from _firsttouch_start import units
from firsttouch.tools.cli.parser import BadUsageError

if TYPE_CHECKING:
    from firsttouch.tools.trace.lines import Summary


def needs_rich(command: str, json_file: str | None) -> None:
    """Refuse before the program runs where its table could not be shown."""
    try:
        import rich.table  # noqa: F401
    except ImportError:
        if json_file != "-":
            raise BadUsageError(
                f"{command}: the table needs rich: pip install 'firsttouch[measure]', or ask for --json -"
            ) from None


def save_json(name: str, content: Mapping[str, Any]) -> None:
    """Write to a file, or to standard output for -."""
    text = json.dumps(content, indent=2) + "\n"
    if name == "-":
        print(text, end="")  # which does nothing where standard output is closed
        return
    with open(name, "w", encoding="utf-8") as file:
        file.write(text)


def table(columns: Sequence[str], rows: Sequence[Sequence[str]], stream: TextIO | None) -> None:
    """Words to the left, figures to the right; as wide as it needs to be where nobody looks at it."""
    if stream is None:  # closed
        return
    from rich.console import Console

    from firsttouch.tools.measuring.console import grid

    width = None if stream.isatty() else 160
    out = Console(file=stream, width=width, highlight=False, markup=False, emoji=False)
    grid(None, columns, rows, out)


def place(line: Any) -> str:
    """File and line, the file as seen from here where it lies below."""
    if not line.file:
        return str(line.place)
    near = os.path.relpath(line.file) if os.path.isabs(line.file) else line.file
    return f"{near if not near.startswith('..') else line.file}:{line.line}"


def summary(found: Summary, most: int, stream: TextIO | None) -> None:
    """Where large arrays came from."""
    if stream is None:
        return
    facts = found.facts["facts"]
    wall = found.wall
    stream.write(
        f"{found.facts['allocations']:,} arrays, at most {units.size(found.facts['peak_in_use'])} at once;"
        f" on {facts.get('allocator', 'unknown memory')} in {units.seconds(wall)}\n"
    )
    rows = [
        (
            place(line),
            f"{line.count:,}",
            units.size(line.bytes),
            units.seconds(line.median_lifetime),
            units.share(line.seconds, wall),
        )
        for line in found.lines[:most]
    ]
    if found.lines:
        table(("line", "arrays", "bytes", "median lifetime", "kernel's share"), rows, stream)
        if len(found.lines) > most:
            more = len(found.lines) - most
            stream.write(f"{units.count(more, 'more line')}; --lines {len(found.lines)} shows them all\n")
        stream.write(
            f"in all {units.share(found.seconds, wall)} of the time in the kernel for arrays of 64 KiB or more"
            " (estimated from their page faults)\n"
        )
    else:
        known = "" if found.facts["complete"] else "as far as was recorded, "
        stream.write(f"{known}no array had 64 KiB or more\n")
    if not found.facts["complete"]:
        stream.write("the trace is truncated: this is what was recorded\n")
