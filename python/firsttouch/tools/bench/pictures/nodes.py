"""Rates between NUMA nodes, as a table in colours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    Draw = Callable[[Axes], None]


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
                axes.text(x, y, words, ha="center", va="center", color="black")
        axes.set_xticks(range(len(columns)), [f"to node {target}" for target in columns])
        axes.set_yticks(range(len(rows)), [f"on node {cpu}, from node {source}" for cpu, source in rows])

    return draw
