"""Tables on a terminal, by rich, which the extra `measure` brings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from firsttouch.measuring.report import Table

if TYPE_CHECKING:
    from rich.console import Console


def show(table: Table, console: Console) -> None:
    """Print a table; its first column holds words, the others figures."""
    from rich.table import Table as RichTable

    shown = RichTable(title=table.title.strip("*") or None, title_justify="left", title_style="bold")
    for at, column in enumerate(table.columns):
        shown.add_column(column, justify="left" if at == 0 else "right", overflow="fold")
    for row in table.rows:
        shown.add_row(*row)
    console.print(shown)
