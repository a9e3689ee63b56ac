"""Draws the pictures of pages' explanations into ``docs/pictures`` when the documentation is built."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import numpy as np

import firsttouch as ft

mpl.use("Agg")

_MIB = 1 << 20


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
    ft.inspection.plot_pagemap(*moments, labels=labels).savefig(path, bbox_inches="tight", metadata={"Date": None})
