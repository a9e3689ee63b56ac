"""An array's life in phases: create, sum, write; on new memory, and on memory that was just freed."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import firsttouch as ft

Array = np.ndarray[Any, np.dtype[np.float64]]


def eager(items: int) -> Array:
    """Create zeros as `zeros` would without support by the C library or the kernel."""
    array = np.empty(items)
    array.fill(0.0)
    return array


CALLOC, MALLOC, ALIGNED, PAGES, POOL = ft.calloc(), ft.malloc(), ft.aligned(64), ft.pages(), ft.pool()

#: The ways to create an array of zeros; `np.empty` and `np.ones` for comparison.
MAKERS: dict[str, Callable[[int], Array]] = {
    "np.zeros": np.zeros,
    "np.ones": np.ones,
    "np.empty": np.empty,
    "np.empty + fill(0)": eager,
    "calloc().zeros": lambda items: ft.zeros(items, allocator=CALLOC),
    "malloc().zeros": lambda items: ft.zeros(items, allocator=MALLOC),
    "aligned(64).zeros": lambda items: ft.zeros(items, allocator=ALIGNED),
    "pages().zeros": lambda items: ft.zeros(items, allocator=PAGES),
    "pool().zeros": lambda items: ft.zeros(items, allocator=POOL),
}
PHASES = ("create", "sum", "write", "total")
STEPS = (1, 5)  # of the write: every item, and every fifth
KEPT = 256 << 20  # bytes of arrays that are live together, so that each is on new memory
SAMPLES = 200  # returned for histograms


def life(make: Callable[[int], Array], items: int, step: int) -> tuple[tuple[float, ...], Array]:
    """Return the seconds of each phase, and the array, which is still live."""
    clock = time.perf_counter
    start = clock()
    array = make(items)
    created = clock()
    array.sum()
    summed = clock()
    array[::step] = 1.0
    written = clock()
    return (created - start, summed - created, written - summed, written - start), array


def measure(maker: str, nbytes: int, seconds: float, most: int) -> dict[str, Any]:
    """Measure life after life in one process: `fresh`, freeing none before the next; then `recycled`, freeing each."""
    make, items = MAKERS[maker], nbytes // 8
    rows: dict[str, list[tuple[float, ...]]] = {f"{regime} {step}": [] for regime in REGIMES for step in STEPS}
    with np.errstate(all="ignore"):  # np.empty may contain NaN
        kept: list[Array] = []
        for _ in range(max(1, min(most, KEPT // nbytes // len(STEPS)))):
            for step in STEPS:
                times, array = life(make, items, step)
                rows[f"fresh {step}"].append(times)
                kept.append(array)
        del array
        kept.clear()
        for step in STEPS:
            life(make, items, step)  # reuses what the others left
            end = time.perf_counter() + seconds
            recycled = rows[f"recycled {step}"]
            while not recycled or (len(recycled) < most and time.perf_counter() < end):
                recycled.append(life(make, items, step)[0])
    return {which: summary(np.array(row)) for which, row in rows.items()}


REGIMES = ("fresh", "recycled")


def summary(rows: np.ndarray[Any, np.dtype[np.float64]]) -> dict[str, Any]:
    """Return, for each phase, the figures to compare, and some of the samples."""
    found: dict[str, Any] = {}
    for phase, column in zip(PHASES, rows.T, strict=True):
        found[phase] = {
            "lives": len(column),
            "minimum": float(column.min()),
            "median": float(np.median(column)),
            "mean": float(column.mean()),
            "deviation": float(column.std(ddof=1)) if len(column) > 1 else 0.0,
            "maximum": float(column.max()),
            "samples": column[:: -(-len(column) // SAMPLES)].tolist(),
        }
    return found
