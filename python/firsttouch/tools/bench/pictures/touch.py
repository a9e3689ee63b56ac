"""Bars of rates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from firsttouch.tools.bench.pictures.axes import plain_numbers
from firsttouch.tools.bench.touching.cells import Key

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"4 KiB": "tab:red", "THP": "tab:green", "2 MiB from the pool": "tab:blue", "glibc": "0.35"}


def rates(axes: Axes, found: Mapping[Key, Mapping[str, Any]]) -> None:
    """Fresh pages in the colour of their kind, the C library's memory in grey; the longest at the top."""
    cells = [(row, column, cell) for (_, row, column), cell in found.items() if column in COLOURS]
    cells.sort(key=lambda one: float(one[2]["rate"]))
    labels = [row if column == "glibc" else f"{row} ({column}{got(column, cell)})" for row, column, cell in cells]
    values = [cell["rate"] / 1e9 for *_, cell in cells]
    bars = axes.barh(labels, values, color=[COLOURS[column] for _, column, _ in cells])
    axes.bar_label(bars, fmt="%.1f", padding=2, fontsize="x-small")
    axes.set(xscale="log", xlabel="GB/s; grey: malloc, calloc, memset and memcpy of the C library, one thread")
    axes.set_xlim(0.7 * min(values), 1.6 * max(values))
    axes.tick_params(axis="y", labelsize="x-small")
    plain_numbers(axes.xaxis)


def got(kind: str, cell: Mapping[str, Any]) -> str:
    """A word where the pages asked for could not be had."""
    return ", not had" if kind != "4 KiB" and cell["huge"] < 0.5 * cell["bytes"] else ""
