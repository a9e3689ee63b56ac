"""Drawings that several experiments share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    Draw = Callable[[Axes], None]


def bars(axes: Axes, groups: Sequence[str], series: Mapping[str, Sequence[float]], label: str = "{:.2f}") -> None:
    """A bar for each series in each group, side by side, with its figure above it; a figure that is NaN is left out."""
    width = 0.8 / len(series)
    for number, (name, values) in enumerate(series.items()):
        places = [group + (number - (len(series) - 1) / 2) * width for group in range(len(groups))]
        drawn = axes.bar(places, values, width * 0.92, label=name)
        words = ["" if value != value else label.format(value) for value in values]
        axes.bar_label(drawn, words, fontsize=7 if len(series) * len(groups) > 12 else 9, padding=1)
    axes.set_xticks(range(len(groups)), groups)
    axes.margins(y=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    if len(series) > 1:
        axes.legend(frameon=False, ncols=min(4, len(series)))


def matrix(warm: Mapping[tuple[int, int, int], float], cold: Mapping[tuple[int, int, int], float]) -> Draw:
    """Draws rates by processor's and source's node (rows) and target's node (columns): `warm`, in brackets `cold`."""
    rows = sorted({(cpu, source) for cpu, source, _ in warm})
    columns = sorted({target for _, _, target in warm})

    def draw(axes: Axes) -> None:
        rates = [[warm[cpu, source, target] for target in columns] for cpu, source in rows]
        axes.imshow(rates, cmap="YlGn", aspect="auto", vmin=0, vmax=1.4 * max(map(max, rates)))
        for y, (cpu, source) in enumerate(rows):
            for x, target in enumerate(columns):
                words = f"{warm[cpu, source, target]:.1f} ({cold[cpu, source, target]:.1f})"
                axes.text(x, y, words, ha="center", va="center")
        axes.set_xticks(range(len(columns)), [f"to node {target}" for target in columns])
        axes.set_yticks(range(len(rows)), [f"on node {cpu}, from node {source}" for cpu, source in rows])

    return draw
