"""Axes that several experiments draw on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from firsttouch.tools.measuring.sizes import name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis


def by_size(axes: Axes, sizes: Sequence[int]) -> None:
    """Name the sizes below, and write plain numbers beside; both axes are logarithmic."""
    axes.set_xticks(sizes, [name(size) for size in sizes])
    axes.set_xticks([], minor=True)
    plain_numbers(axes.yaxis)
    axes.grid(alpha=0.3)


def plain_numbers(axis: Axis) -> None:
    """0.5, 1, 2, 5, 10 on a logarithmic axis, where the field writes powers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(10, (1.0, 2.0, 5.0), numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_locator(NullLocator())


def legend_beside(axes: Axes, title: str = "") -> None:
    """A legend to the right of the picture, its lines long enough to tell their styles."""
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5), handlelength=3.5, title=title or None)
