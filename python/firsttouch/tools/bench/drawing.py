"""Matplotlib drawing shared by the experiments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from firsttouch.tools.measuring.sizes import name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

    Draw = Callable[[Axes], None]


def by_size(axes: Axes, sizes: Sequence[int]) -> None:
    """Label the horizontal axis with sizes and the vertical one with plain numbers; both are logarithmic."""
    axes.set_xticks(sizes, [name(size) for size in sizes])
    axes.set_xticks([], minor=True)
    plain_numbers(axes.yaxis)
    axes.grid(alpha=0.3)


def plain_numbers(axis: Axis) -> None:
    """Label a logarithmic axis with 0.5, 1, 2, 5, 10, where Matplotlib writes powers."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axis.set_major_locator(LogLocator(10, (1.0, 2.0, 5.0), numticks=12))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_locator(NullLocator())


def legend_beside(axes: Axes, title: str = "") -> None:
    """Add a legend to the right of the axes, with lines long enough to show their styles."""
    axes.legend(fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5), handlelength=3.5, title=title or None)


def bars(axes: Axes, groups: Sequence[str], series: Mapping[str, Sequence[float]], form: str = "") -> None:
    """Plot a bar for each series in each group, side by side, with its value above it."""
    many = len(series) * len(groups) > 24
    form = form or ("{:.1f}" if many else "{:.2f}")
    width = 0.8 / len(series)
    for number, (label, values) in enumerate(series.items()):
        places = [group + (number - (len(series) - 1) / 2) * width for group in range(len(groups))]
        drawn = axes.bar(places, values, width * 0.92, label=label)
        words = [form.format(value) for value in values]
        axes.bar_label(drawn, words, fontsize=7 if many else 8, padding=1)
    axes.set_xticks(range(len(groups)), groups)
    axes.margins(y=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    if len(series) > 1:
        axes.legend(frameon=False, ncols=min(4, len(series)))


def matrix(warm: Mapping[tuple[int, int, int], float], cold: Mapping[tuple[int, int, int], float]) -> Draw:
    """Plot rates by the nodes of processor and source (rows) and target (columns): `warm`, with `cold` in brackets."""
    rows = sorted({(cpu, source) for cpu, source, _ in warm})
    columns = sorted({target for _, _, target in warm})

    def draw(axes: Axes) -> None:
        rates = [[warm[cpu, source, target] for target in columns] for cpu, source in rows]
        axes.imshow(rates, cmap="YlGn", aspect="auto", vmin=0, vmax=1.4 * max(map(max, rates)))
        for y, (cpu, source) in enumerate(rows):
            for x, target in enumerate(columns):
                words = f"{warm[cpu, source, target]:.1f} ({cold[cpu, source, target]:.1f})"
                axes.text(x, y, words, ha="center", va="center", color="black")
        axes.set_xticks(range(len(columns)), [f"to node {target}" for target in columns])
        axes.set_yticks(range(len(rows)), [f"on node {cpu}, from node {source}" for cpu, source in rows])

    return draw
