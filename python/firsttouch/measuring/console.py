"""Tables on a terminal, by rich, which the extra `measure` brings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from firsttouch.measuring.report import Table

if TYPE_CHECKING:
    from rich.console import Console


#: Words of a cell up to this length are not broken.
WHOLE = 20


def plain(text: str) -> str:
    """Markdown's emphasis and code taken off, for a terminal."""
    return text.replace("**", "").replace("`", "")


def _is_words(cell: str) -> bool:
    """Whether more than half of it is letters: a figure has fewer, its unit included."""
    return 2 * sum(character.isalpha() for character in cell) > len(cell)


def too_narrow(columns: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> bool:
    """Whether some figure would be torn into more than two lines, or within a word of its own."""
    least = [min(WHOLE, max((len(row[0]) for row in rows), default=0))]
    for at, column in enumerate(columns[1:], 1):
        words = [word for cell in [column, *(row[at] for row in rows)] for word in cell.split()]
        needed = [len(word) for word in words] + [(len(row[at]) + 1) // 2 for row in rows]
        least.append(min(WHOLE, max(needed, default=0)))
    return width < sum(least) + 3 * len(least)


def stacked(columns: Sequence[str], rows: Sequence[Sequence[str]], console: Console) -> None:
    """Print each row's cells below each other, for a terminal that is too narrow for columns."""
    side = max(map(len, columns[1:]), default=0)
    for row in rows:
        console.print(f"\n{row[0]}", soft_wrap=True)
        for column, cell in zip(columns[1:], row[1:], strict=True):
            console.print(f"  {column:{side}}  {cell}", soft_wrap=True)
    console.print()


def show(table: Table, console: Console) -> None:
    """Print a table: columns of words to the left, columns of figures to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable

    title = plain(table.title) or None
    if too_narrow(table.columns, table.rows, console.width):
        console.print(title or "", style="bold", soft_wrap=True)
        stacked(table.columns, table.rows, console)
        return
    shown = RichTable(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for at, column in enumerate(table.columns):
        words = at == 0 or any(_is_words(row[at]) for row in table.rows)
        short = max((len(row[at]) for row in table.rows), default=0) <= WHOLE
        shown.add_column(column, justify="left" if words else "right", overflow="fold", no_wrap=words and short)
    for row in table.rows:
        shown.add_row(*row)
    console.print(shown)
