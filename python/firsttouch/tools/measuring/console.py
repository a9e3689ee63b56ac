"""Tables on a terminal, rendered by rich (extra `measure`)."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from firsttouch.tools.measuring.report import Table


#: The width of the gap between two columns, and of both edges.
_BESIDE = 3
_EDGES = 2


def plain(text: str) -> str:
    """Strip Markdown's emphasis and code marks, for a terminal."""
    return text.replace("**", "").replace("`", "")


def _is_words(cell: str) -> bool:
    """Return whether more than half of the cell is letters, unlike a figure with its unit, even "9 MiB"."""
    letters = sum(character.isalpha() for character in cell)
    return 2 * letters > len(cell) and not re.fullmatch(r"[\d.,]+ [A-Za-z]{1,3}", cell)


def _widest(rows: Sequence[Sequence[str]], at: int) -> int:
    return max((len(row[at]) for row in rows), default=0)


def headings(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> list[str] | None:
    """Return the columns' headings for a table of this width, wrapped between words if necessary.

    None if some cell would have to be broken even so.
    """
    widest = [_widest(rows, at) for at in range(len(columns))]
    room = width - _BESIDE * (len(columns) - 1) - _EDGES
    if sum(max(cells, len(column)) for cells, column in zip(widest, columns, strict=True)) <= room:
        return list(columns)
    broken = [
        "\n".join(textwrap.wrap(column, max(1, cells), break_long_words=False))
        for cells, column in zip(widest, columns, strict=True)
    ]
    needed = [max(cells, *map(len, text.split("\n"))) for cells, text in zip(widest, broken, strict=True)]
    return broken if sum(needed) <= room else None


def say(text: str, console: Console, head: str = "", style: str | None = None) -> None:
    """Print a sentence after ``head``; on a terminal wrapped between words, with a hanging indent."""
    if console.is_terminal:
        room = max(console.width, len(head) + 20)
        text = textwrap.fill(
            text, room, initial_indent=head, subsequent_indent=" " * len(head),
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        head = ""
    console.print(f"{head}{text}", style=style, soft_wrap=True)


def stacked(columns: Sequence[str], rows: Sequence[Sequence[str]], console: Console) -> None:
    """Print the cells of each row below each other, for a terminal that is too narrow for columns."""
    side = max(map(len, columns[1:]), default=0)
    for row in rows:
        console.print(f"\n{row[0]}", soft_wrap=True)
        for column, cell in zip(columns[1:], row[1:], strict=True):
            console.print(f"  {column:{side}}  {cell}", soft_wrap=True)
    console.print()


def show(table: Table, console: Console) -> None:
    """Print a table of a report."""
    grid(plain(table.title) or None, table.columns, table.rows, console)


def grid(title: str | None, columns: Sequence[str], rows: Sequence[Sequence[str]], console: Console) -> None:
    """Print a table: columns of words to the left, columns of figures to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable

    shown_as = headings(columns, rows, console.width)
    if shown_as is None:
        if title:
            console.print(title, style="bold", soft_wrap=True)
        stacked(columns, rows, console)
        return
    shown = RichTable(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for at, heading in enumerate(shown_as):
        words = at == 0 or any(_is_words(row[at]) for row in rows)
        shown.add_column(heading, justify="left" if words else "right", no_wrap=True)
    for row in rows:
        shown.add_row(*row)
    console.print(shown)
