"""Pictures of an experiment's outcome, drawn by matplotlib, which the extra `measure` brings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Picture:
    """One pair of axes: a name for files, a title for people, and who draws."""

    name: str
    title: str
    draw: Callable[[Axes], None]


def save(pictures: Sequence[Picture], path: Path) -> None:
    """Draw all pictures below each other into one file; its ending says the format, as matplotlib knows it.

    Raises :exc:`ImportError` without matplotlib, :exc:`ValueError` for an unknown ending, :exc:`OSError` where the file
    cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.5 * len(pictures)), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, picture in zip(figure.subplots(len(pictures), squeeze=False)[:, 0], pictures, strict=True):
        axes.set_title(picture.title)
        picture.draw(axes)
    figure.savefig(path)
