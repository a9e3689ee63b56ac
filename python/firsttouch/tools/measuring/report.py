"""Tables and pictures: what a command found, on a terminal and in files."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    height: float = 4.5
    """In inches, at a width of 9."""


def save_pictures(pictures: Sequence[Picture], path: Path) -> None:
    """Draw all pictures below each other into one file; its extension selects matplotlib's format."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    heights = [picture.height for picture in pictures]
    figure = Figure(figsize=(9, sum(heights)), layout="constrained")
    grid = figure.subplots(len(pictures), squeeze=False, height_ratios=heights)
    for axes, picture in zip(grid[:, 0], pictures, strict=True):
        axes.set_title(picture.title)
        picture.draw(axes)
    # By default an SVG contains the date and random names; without them, the same figures produce the same file.
    drawn: dict[str, Any] = {"metadata": {"Date": None}} if path.suffix.lower() in (".svg", ".svgz") else {}
    with rc_context({"svg.hashsalt": path.stem}):
        figure.savefig(path, **drawn)
