"""Plots of an experiment's results, drawn with matplotlib (extra `measure`)."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Picture:
    """One pair of axes: a name for files, a title, and the function that draws."""

    name: str
    title: str
    draw: Callable[[Axes], None]
    height: float = 4.5
    """In inches, at a width of 9."""


def save(pictures: Sequence[Picture], path: Path) -> None:
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


#: Stands for the page's text colour while matplotlib draws.
_INK = "#010203"


def svg(picture: Picture, width: float) -> str:
    """Return one picture as an `svg` element, `width` inches wide: no background, text in the page's colour."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    inked = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color", "grid.color")
    seed = f"{picture.name} {width}"  # of the names inside, which must differ between the pictures of one page
    settings: dict[Any, Any] = dict.fromkeys(inked, _INK)
    settings |= {"svg.fonttype": "none", "svg.hashsalt": seed, "legend.framealpha": 0.0}
    with rc_context(settings):
        figure = Figure(figsize=(width, picture.height), layout="constrained")
        FigureCanvasSVG(figure)
        picture.draw(figure.subplots())
        drawn = io.StringIO()
        figure.savefig(
            drawn, format="svg", transparent=True, metadata=dict.fromkeys(("Date", "Creator", "Format", "Type"))
        )
    text = drawn.getvalue()
    return text[text.index("<svg") :].replace(_INK, "currentColor")
