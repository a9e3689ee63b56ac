"""Tables on a terminal, by rich, which the extra `measure` brings."""

from __future__ import annotations

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


def show(table: Table, console: Console) -> None:
    """Print a table: columns of words to the left, columns of figures to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable

    title = plain(table.title) or None
    shown = RichTable(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for at, column in enumerate(table.columns):
        words = at == 0 or any(_is_words(row[at]) for row in table.rows)
        short = max((len(row[at]) for row in table.rows), default=0) <= WHOLE
        shown.add_column(column, justify="left" if words else "right", overflow="fold", no_wrap=words and short)
    for row in table.rows:
        shown.add_row(*row)
    console.print(shown)
