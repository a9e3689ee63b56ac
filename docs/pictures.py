"""Draws the pictures of pages' explanations into ``docs/pictures`` when the documentation is built."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib import pyplot
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch

import firsttouch as ft
from firsttouch.inspection import PageState

mpl.use("Agg")

_MIB = 1 << 20
_LOOKS = {
    PageState.HUGE: ("huge pages", "#0b4f8a"),
    PageState.SMALL: ("small pages", "#56b4e9"),
    PageState.ZERO: ("shared zero page", "#f0b429"),
    PageState.ABSENT: ("not there yet", "#e9e9e6"),
}


def draw(folder: Path) -> None:
    """Draw all pictures."""
    folder.mkdir(exist_ok=True)
    _save(folder / "first-touch.svg", *_first_touch())
    _save(folder / "zero-page.svg", *_zero_page())


def _first_touch() -> tuple[list[ft.inspection.PageMap], list[str]]:
    a = ft.pages().zeros(16 * _MIB, np.uint8)
    moments = [ft.inspection.pagemap(a)]
    a[: 4 * _MIB].sum()
    moments.append(ft.inspection.pagemap(a))
    a[6 * _MIB : 12 * _MIB] = 1
    moments.append(ft.inspection.pagemap(a))
    return moments, ["after np.zeros", "the first quarter read", "the middle written"]


def _zero_page() -> tuple[list[ft.inspection.PageMap], list[str]]:
    a = ft.pages().zeros(16 * _MIB, np.uint8)
    before = ft.inspection.pagemap(a)
    a.sum()
    return [before, ft.inspection.pagemap(a)], ["after np.zeros", "after reading all of it"]


def _save(path: Path, moments: list[ft.inspection.PageMap], labels: list[str]) -> None:
    states, size = list(_LOOKS), (9, 0.9 + 0.8 * len(moments))
    figure, axes = pyplot.subplots(len(moments), figsize=size, layout="constrained", sharex=True)
    for ax, found, label in zip(axes, moments, labels, strict=True):
        colours = [states.index(state) for state in found.states.tolist()]
        palette = ListedColormap([colour for _, colour in _LOOKS.values()])
        ax.imshow([colours], palette, aspect="auto", interpolation="nearest", vmin=0, vmax=3)
        ax.set(yticks=[])
        ax.set_title(label, loc="left", weight="bold", fontsize=9)
    axes[-1].set_xlabel("page of the array")
    handles = [Patch(color=colour, label=name) for name, colour in _LOOKS.values()]
    figure.legend(handles=handles, loc="outside lower center", ncols=4)
    figure.savefig(path, bbox_inches="tight", metadata={"Date": None})
