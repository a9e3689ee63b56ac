"""Tables on a terminal, by rich, which the extra `measure` brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firsttouch.measuring.report import Table

if TYPE_CHECKING:
    from rich.console import Console


def plain(text: str) -> str:
    """Markdown's emphasis and code taken off, for a terminal."""
    return text.replace("**", "").replace("`", "")


def show(table: Table, console: Console) -> None:
    """Print a table: columns of words to the left, columns of figures to the right."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table as RichTable

    title = plain(table.title) or None
    shown = RichTable(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False)
    for at, column in enumerate(table.columns):
        words = at == 0 or not any(row[at][:1].isdigit() for row in table.rows)
        shown.add_column(column, justify="left" if words else "right", overflow="fold")
    for row in table.rows:
        shown.add_row(*row)
    console.print(shown)
