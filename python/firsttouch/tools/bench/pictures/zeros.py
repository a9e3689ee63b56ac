"""What remains of lazy zeros, where the time goes, and how it is spread."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from firsttouch.tools.bench.pictures.axes import by_size, legend_beside, plain_numbers
from firsttouch.tools.bench.tasks.zeros import MAKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Found = Mapping[tuple[str, int], Mapping[str, Mapping[str, Any]]]
COLOURS = {"create": "tab:red", "sum": "tab:blue", "write": "tab:orange", "total": "0.35"}


def remains(axes: Axes, wanted: list[int], found: Found) -> None:
    """The lazy way's gain over the eager one: creation alone, and with the use of the memory."""
    shown = {
        ("fresh 1", "create"): ("creation alone", "tab:red", "-"),
        ("fresh 1", "total"): ("created, summed, written", "tab:green", "-"),
        ("fresh 5", "total"): ("the same, every fifth written", "tab:olive", "-"),
        ("recycled 1", "create"): ("recycled: creation alone", "tab:red", ":"),
        ("recycled 1", "total"): ("recycled: all three", "tab:green", ":"),
    }
    for (which, phase), (label, colour, style) in shown.items():
        eager, lazy = (
            np.array([found[maker, size][which][phase]["median"] for size in wanted])
            for maker in ("np.empty + fill(0)", "np.zeros")
        )
        axes.plot(wanted, eager / lazy, style, color=colour, marker="o", label=label)
    axes.axhline(1.0, color="0.5", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="array", ylabel="times faster")
    by_size(axes, wanted)
    legend_beside(axes)


def ways(found: Found) -> list[str]:
    """In the order of the tables, the first at the top."""
    return [maker for maker in MAKERS if any(maker == one for one, _ in found)]


def phases(axes: Axes, size: int, which: str, found: Found) -> None:
    """A bar for each way, cut into its phases."""
    names = ways(found)
    left = np.zeros(len(names))
    for phase in ("create", "sum", "write"):
        width = np.array([found[maker, size][which][phase]["median"] * 1e3 for maker in names])
        axes.barh(names, width, left=left, color=COLOURS[phase], label=phase)
        left += width
    axes.invert_yaxis()
    axes.set(xlabel="milliseconds")
    axes.grid(axis="x", alpha=0.3)
    legend_beside(axes)


def histograms(axes: Axes, size: int, found: Found) -> None:
    """A row for each way: how often creation alone, and all three phases, took how long."""
    names = ways(found)
    samples = {
        (maker, phase): np.array(found[maker, size]["fresh 1"][phase]["samples"]) * 1e3
        for maker in names
        for phase in ("create", "total")
    }
    every = np.concatenate(list(samples.values()))
    bins = np.geomspace(every.min(), every.max() * 1.001, 60)
    for row, maker in enumerate(names):
        for phase in ("create", "total"):
            counts, edges = np.histogram(samples[maker, phase], bins)
            heights = 0.9 * counts / counts.max()
            label = {"create": "creation alone", "total": "created, summed, written"}[phase] if row == 0 else None
            top = row + 0.45 - heights
            axes.stairs(top, edges, baseline=row + 0.45, fill=True, color=COLOURS[phase], label=label)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="milliseconds; the height is the share of the arrays")
    plain_numbers(axes.xaxis)
    axes.grid(axis="x", alpha=0.3)
    legend_beside(axes)
