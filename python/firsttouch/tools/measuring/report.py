"""What an experiment found: tables, pictures and sentences, on a terminal, as Markdown, and as an HTML page."""

from __future__ import annotations

import datetime
import io
import os
import re
import textwrap
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firsttouch.tools.measuring.statistics import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from rich.console import Console

#: The width of the gap between two columns of a table on a terminal, and of both edges.
_BESIDE, _EDGES = 2, 3


def plain(text: str) -> str:
    """Strip Markdown's emphasis and code marks, for a terminal."""
    return text.replace("**", "").replace("`", "")


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
        """Print it: words to the left, figures to the right; the cells of a row below each other if it is too wide."""
        from rich.box import SIMPLE_HEAD
        from rich.table import Table as RichTable

        headings, title = self._headings(console.width), plain(self.title) or None
        if headings is None:
            if title:
                console.print(title, style="bold", soft_wrap=True)
            side = max(map(len, self.columns[1:]), default=0)
            for row in self.rows:
                console.print(f"\n{row[0]}", soft_wrap=True)
                for column, cell in zip(self.columns[1:], row[1:], strict=True):
                    console.print(f"  {column:{side}}  {cell}", soft_wrap=True)
            console.print()
            return
        shown = RichTable(title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for at, heading in enumerate(headings):
            words = at == 0 or any(_is_words(row[at]) for row in self.rows)
            shown.add_column(heading, justify="left" if words else "right", no_wrap=True)
        for row in self.rows:
            shown.add_row(*row)
        console.print(shown)

    def _headings(self, width: int) -> list[str] | None:
        """Return the headings for a table of this width, wrapped if need be; None if a cell would have to be broken."""
        widest = [max((len(row[at]) for row in self.rows), default=0) for at in range(len(self.columns))]
        room = width - _BESIDE * (len(self.columns) - 1) - _EDGES
        if sum(max(cells, len(column)) for cells, column in zip(widest, self.columns, strict=True)) <= room:
            return list(self.columns)
        broken = [
            "\n".join(textwrap.wrap(column, max(1, cells), break_long_words=False))
            for cells, column in zip(widest, self.columns, strict=True)
        ]
        needed = [max(cells, *map(len, text.split("\n"))) for cells, text in zip(widest, broken, strict=True)]
        return broken if sum(needed) <= room else None


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
        from matplotlib.backends.backend_svg import FigureCanvasSVG
        from matplotlib.figure import Figure

        ink = "#010203"  # stands for the page's text colour while matplotlib draws
        inked = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "grid.color")
        seed = f"{self.name} {width}"  # of the names inside, which must differ between the pictures of one page
        settings: dict[Any, Any] = dict.fromkeys(inked, ink)
        settings |= {"svg.fonttype": "none", "svg.hashsalt": seed, "legend.framealpha": 0.0}
        with rc_context(settings):
            figure = Figure(figsize=(width, self.height), layout="constrained")
            FigureCanvasSVG(figure)
            self.draw(figure.subplots())
            drawn = io.StringIO()
            metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
            figure.savefig(drawn, format="svg", transparent=True, metadata=metadata)
        text = drawn.getvalue()
        return text[text.index("<svg") :].replace(ink, "currentColor")


def save_pictures(pictures: Sequence[Picture], path: Path) -> None:
    """Draw all pictures below each other into one file; its extension selects matplotlib's format.

    Raises :exc:`ImportError` without matplotlib, :exc:`ValueError` for an unknown extension, and :exc:`OSError` if the
    file cannot be written.
    """
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    heights = [picture.height for picture in pictures]
    figure = Figure(figsize=(9, sum(heights)), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(len(pictures), squeeze=False, height_ratios=heights)
    for axes, picture in zip(grid[:, 0], pictures, strict=True):
        axes.set_title(picture.title)
        picture.draw(axes)
    # By default an SVG contains the date and random names; without them, the same figures produce the same file.
    drawn: dict[str, Any] = {"metadata": {"Date": None}} if path.suffix.lower() in (".svg", ".svgz") else {}
    with rc_context({"svg.hashsalt": path.stem}):
        figure.savefig(path, **drawn)


@dataclass(frozen=True)
class Page:
    """A self-contained HTML page, from the top; texts are plain and are escaped."""

    title: str
    when: str = ""
    lead: Sequence[str] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    notes: Sequence[str] = ()
    repeat: Mapping[str, str] = field(default_factory=dict[str, str])
    """Descriptions of commands, and the commands."""
    machine: Mapping[str, str] = field(default_factory=dict[str, str])

    def html(self) -> str:
        """Return the whole file; matplotlib draws the pictures."""
        from jinja2 import Environment, PackageLoader, StrictUndefined

        loader = PackageLoader("firsttouch.tools.measuring", ".")
        environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
        when = self.when or f"{datetime.date.today().isoformat()} on {os.uname().nodename}"
        return environment.get_template("page.html").render(page=self, when=when)


@dataclass
class Section:
    """The findings of an experiment."""

    name: str
    title: str
    asked: str
    tables: list[Table] = field(default_factory=list[Table])
    verdicts: list[Verdict] = field(default_factory=list[Verdict])
    notes: list[str] = field(default_factory=list[str])
    raw: dict[str, Any] = field(default_factory=dict[str, Any])
    pictures: list[Picture] = field(default_factory=list[Picture])
    how: str = ""  # when, how long, quick or in full; set by `conduct`

    def as_dict(self) -> dict[str, Any]:
        """Return everything except the pictures in plain types, for JSON."""
        found = {key: getattr(self, key) for key in ("name", "title", "asked", "notes", "how", "raw")}
        found["tables"] = [asdict(table) for table in self.tables]
        found["verdicts"] = [asdict(verdict) for verdict in self.verdicts]
        return found

    def sentences(self) -> list[str]:
        """Return the notes, then the verdicts, as plain sentences."""
        judged = [f"{verdict.bar}: {verdict.outcome} ({verdict.figure})" for verdict in self.verdicts]
        return [plain(text) for text in (*self.notes, *judged)]


def conduct(run: Callable[[], Section], quick: bool) -> Section:
    """Return the section that `run` returns, with its `how` filled in."""
    busy = os.getloadavg()[0]
    start = time.monotonic()
    section = run()
    took = time.monotonic() - start
    kind = "A quick run, which only shows that the experiment works" if quick else "Measured in full"
    section.how = f"{kind}, {datetime.date.today().isoformat()}, in {took:.0f} s; "
    section.how += f"the load average was {busy:.2f} at the start."
    return section
