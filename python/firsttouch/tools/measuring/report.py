"""Tables, pictures and pages: what a command found, on a terminal, in JSON, as pictures and as HTML."""

from __future__ import annotations

import datetime
import io
import os
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firsttouch.tools.measuring.machine import describe

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.console import Console

#: The width of the gap between two columns of a table on a terminal, and of both edges.
_BESIDE, _EDGES = 2, 3


def _is_words(cell: str) -> bool:
    """Return whether more than half of the cell is letters, unlike a figure with its unit, even "9 MiB"."""
    letters = sum(character.isalpha() for character in cell)
    return 2 * letters > len(cell) and not re.fullmatch(r"[\d.,]+ [A-Za-z]{1,3}", cell)


@dataclass
class Table:
    """Rows of words under a title."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[str]] = field(default_factory=list[Sequence[str]])

    def show(self, console: Console) -> None:
        """Print it: words to the left, figures to the right; where it is too wide, headings and words are broken."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table as RichTable

        shown = RichTable(
            title=self.title or None, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0)
        )
        cells = [[row[at] for row in self.rows] for at in range(len(self.columns))]
        widest = [max(map(len, column), default=0) for column in cells]
        needed = sum(max(cell, len(name)) + _BESIDE for cell, name in zip(widest, self.columns, strict=True)) + _EDGES
        for at, name in enumerate(self.columns):
            words = at == 0 or any(map(_is_words, cells[at]))
            width = len(name) if needed <= console.width else max(1, widest[at])
            heading = "\n".join(textwrap.wrap(name, width, break_long_words=False))
            shown.add_column(heading, justify="left" if words else "right", no_wrap=not words, overflow="fold")
        for row in self.rows:
            shown.add_row(*row)
        console.print(shown)


@dataclass(frozen=True)
class Picture:
    """One pair of axes: a name for files, a title, and the function that draws."""

    name: str
    title: str
    draw: Callable[[Axes], None]
    height: float = 4.5
    """In inches, at a width of 9."""

    def svg(self, width: float) -> str:
        """Return an `svg` element, `width` inches wide: no background, text in the page's colour."""
        from matplotlib import rc_context
        from matplotlib.figure import Figure

        ink = "#010203"  # stands for the page's text colour while matplotlib draws
        inked = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "grid.color")
        settings: dict[Any, Any] = dict.fromkeys(inked, ink)
        seed = f"{self.name} {width}"  # of the names inside, which must differ between the pictures of one page
        settings |= {"svg.fonttype": "none", "svg.hashsalt": seed, "legend.framealpha": 0.0}
        with rc_context(settings):
            figure = Figure(figsize=(width, self.height), layout="constrained")
            self.draw(figure.subplots())
            drawn = io.StringIO()
            metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
            figure.savefig(drawn, format="svg", transparent=True, metadata=metadata)
        text = drawn.getvalue()
        return text[text.index("<svg") :].replace(ink, "currentColor")


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


@dataclass
class Page:
    """What a command found, from the top: conclusions, tables, pictures, notes. Texts are plain."""

    title: str
    lead: Sequence[str] = field(default_factory=list[str])
    tables: Sequence[Table] = field(default_factory=list[Table])
    pictures: Sequence[Picture] = field(default_factory=list[Picture])
    notes: Sequence[str] = field(default_factory=list[str])
    repeat: Mapping[str, str] = field(default_factory=dict[str, str])
    """Descriptions of commands, and the commands."""

    def html(self) -> str:
        """Return a self-contained HTML page; matplotlib draws the pictures."""
        from jinja2 import Environment, PackageLoader, StrictUndefined

        loader = PackageLoader("firsttouch.tools.measuring", ".")
        environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
        when = f"{datetime.datetime.now().astimezone().isoformat(timespec='minutes')} on {os.uname().nodename}"
        return environment.get_template("page.html").render(page=self, when=when, machine=describe())
