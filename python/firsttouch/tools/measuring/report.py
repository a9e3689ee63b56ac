"""Tables, pictures and pages: what a command found, on a terminal and in files."""

from __future__ import annotations

import datetime
import platform
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.console import Console


@dataclass
class Table:
    """Rows of words under a title."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list[Sequence[str]])

    def show(self, console: Console) -> None:
        """Print it: words to the left, what begins with a digit to the right; long headings are broken."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table as RichTable

        shown = RichTable(
            title=self.title or None, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0)
        )
        cells = [[row[at] for row in self.rows] for at in range(len(self.columns))]
        widest = [max(map(len, column), default=1) for column in cells]
        needed = sum(max(cell, len(name)) + 2 for cell, name in zip(widest, self.columns, strict=True)) + 3
        for at, name in enumerate(self.columns):
            heading = name if needed <= console.width else textwrap.fill(name, widest[at] or 1, break_long_words=False)
            is_figures = at > 0 and all(cell[:1].isdigit() or not cell for cell in cells[at])
            shown.add_column(heading, justify="right" if is_figures else "left", no_wrap=is_figures, overflow="fold")
        for row in self.rows:
            shown.add_row(*row)
        console.print(shown, soft_wrap=False)


@dataclass(frozen=True)
class Picture:
    """One pair of axes: a title, and the function that draws."""

    title: str
    draw: Callable[[Axes], None]
    height: float
    """In inches, at a width of 9."""

    def save(self, path: Path) -> None:
        """Draw it into a file, whose extension selects matplotlib's format."""
        from matplotlib.figure import Figure

        figure = Figure(figsize=(9, self.height), layout="constrained")
        axes = figure.subplots()
        axes.set_title(textwrap.fill(self.title, 90))
        self.draw(axes)
        figure.savefig(path)


_STYLE = """
:root { color-scheme: light dark; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; font: 16px/1.5 system-ui, sans-serif; }
h1 { font: bold 1.2rem/1.4 ui-monospace, monospace; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin-top: 2rem; }
b { display: block; margin: .5rem 0; }
div { overflow-x: auto; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem 1rem .3rem 0; border-bottom: 1px solid #8886; text-align: left; white-space: pre-wrap; }
"""


def page(title: str, lead: Sequence[str], tables: Sequence[Table], notes: Sequence[str]) -> str:
    """Return an HTML page: what the command found in sentences, then its tables and notes."""

    def each(tag: str, texts: Sequence[str]) -> str:
        return "".join(f"<{tag}>{escape(text)}</{tag}>" for text in texts)

    def drawn(table: Table) -> str:
        rows = [each("th", table.columns), *(each("td", row) for row in table.rows)]
        lines = "\n".join(f"<tr>{row}</tr>" for row in rows if row)
        return f'{each("h2", [table.title] if table.title else [])}<div tabindex="0"><table>\n{lines}\n</table></div>'

    when = f"{datetime.datetime.now().astimezone().isoformat(timespec='minutes')} on {platform.node()}"
    body = [each("h1", [title]), each("p", [when]), each("b", lead), *map(drawn, tables)]
    body.append(f"<ul>{each('li', notes)}</ul>" if notes else "")
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    head += f"{each('title', [title])}<style>{_STYLE}</style>"
    return '<!doctype html>\n<html lang="en">' + "\n".join([head, "<main>", *body, "</main>", "</html>", ""])
