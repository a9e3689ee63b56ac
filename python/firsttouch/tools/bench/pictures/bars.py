"""Bars side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def bars(axes: Axes, groups: Sequence[str], series: Mapping[str, Sequence[float]], label: str = "") -> None:
    """A bar for each series in each group, side by side, with its figure above it."""
    many = len(series) * len(groups) > 24
    form = label or ("{:.1f}" if many else "{:.2f}")
    width = 0.8 / len(series)
    for number, (name, values) in enumerate(series.items()):
        places = [group + (number - (len(series) - 1) / 2) * width for group in range(len(groups))]
        drawn = axes.bar(places, values, width * 0.92, label=name)
        words = [form.format(value) for value in values]
        axes.bar_label(drawn, words, fontsize=7 if many else 8, padding=1)
    axes.set_xticks(range(len(groups)), groups)
    axes.margins(y=0.12)
    axes.spines[["top", "right"]].set_visible(False)
    if len(series) > 1:
        axes.legend(frameon=False, ncols=min(4, len(series)))
