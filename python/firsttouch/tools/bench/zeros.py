"""Creating zeros, and what remains of the speed of lazy ones when they are used.

Mark Kittisopikul's "Faster zeros with calloc" (discourse.julialang.org, topic 69860) compared Julia's `zeros`, which
writes the zeros at once, with `calloc`, which NumPy's `zeros` uses, on 1,024 x 1,024 doubles (8 MiB): 1.652 ms against
12.4 us on Windows, 133 times faster, and 474.5 us against 24.3 us under the Windows Subsystem for Linux, 20 times.
This experiment measures what remains of that when the array is summed and written.

*Fresh*: no array is freed before the next is created, so each is on memory that is new to the process, as in a program
that keeps its arrays. *Recycled*: each is freed before the next, which the C library and pools serve from resident
memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import firsttouch as ft
from firsttouch._internal import units
from firsttouch.tools.bench.common import KIB, MIB, Cell, Section, Settings, lines, measured, middle, name
from firsttouch.tools.measuring.processes import Call
from firsttouch.tools.measuring.report import Picture, Table

Array = np.ndarray[Any, np.dtype[np.float64]]
ARRAYS = 2
FULL, QUICK = (4 * KIB, 64 * KIB, MIB, 8 * MIB, 64 * MIB, 512 * MIB), (4 * KIB, 8 * MIB, 64 * MIB)
ORIGINAL = 8 * MIB
LAZY, EAGER = "np.zeros", "np.empty + fill(0)"
PHASES, REGIMES = ("create", "sum", "write", "total"), ("fresh", "recycled")
KEPT = 256 << 20  # bytes of arrays that are live together, so that each is on new memory


def eager(items: int) -> Array:
    """Create zeros as `zeros` would without support by the C library or the kernel."""
    array = np.empty(items)
    array.fill(0.0)
    return array


#: The ways to create an array of zeros.
MAKERS: dict[str, Callable[[int], Array]] = {
    LAZY: np.zeros,
    EAGER: eager,
    "calloc().zeros": ft.calloc().zeros,
    "pages().zeros": ft.pages().zeros,
    "pool().zeros": ft.pool().zeros,
}


def life(make: Callable[[int], Array], items: int) -> tuple[list[float], Array]:
    """Return the seconds of each phase, and the array, which is still live."""
    clock = time.perf_counter
    start = clock()
    array = make(items)
    created = clock()
    array.sum()
    summed = clock()
    array[:] = 1.0
    written = clock()
    return [created - start, summed - created, written - summed, written - start], array


def measure(maker: str, nbytes: int, seconds: float, most: int) -> dict[str, float]:
    """Measure life after life in one process: `fresh`, freeing none before the next; then `recycled`, freeing each."""
    make, items = MAKERS[maker], nbytes // 8
    lives = [life(make, items) for _ in range(max(1, min(most, KEPT // nbytes)))]
    fresh = [times for times, _ in lives]
    lives.clear()
    life(make, items)  # reuses what the others left
    recycled: list[list[float]] = []
    end = time.perf_counter() + seconds
    while not recycled or (len(recycled) < most and time.perf_counter() < end):
        recycled.append(life(make, items)[0])
    medians = {regime: np.median(rows, axis=0) for regime, rows in zip(REGIMES, (fresh, recycled), strict=True)}
    return {f"{regime} {phase}": float(row[at]) for regime, row in medians.items() for at, phase in enumerate(PHASES)}


def run(settings: Settings) -> Section:
    """Measure every way at every size."""
    section = Section("zeros", "Creating zeros, summing and writing them")
    sizes = settings.chosen(FULL, QUICK, ARRAYS)
    effort = {"seconds": 0.03, "most": 50} if settings.quick else {"seconds": 0.2, "most": 1000}
    cells = {
        (maker, size): Cell(Call(__name__, "measure", {"maker": maker, "nbytes": size, **effort}), max(KEPT, 2 * size))
        for maker in MAKERS
        for size in sizes
    }
    found = measured(cells, 1 if settings.quick else 3, settings.progress)
    section.raw = {f"{maker}, {size}": replies for (maker, size), replies in found.items()}

    def gain(size: int, which: str) -> float:
        return middle(found[EAGER, size], which) / middle(found[LAZY, size], which)

    for size in sizes:
        for regime in REGIMES:
            table = Table(f"{name(size)}, {regime} memory, medians", ["way", *PHASES])
            for maker in MAKERS:
                times = (units.seconds(middle(found[maker, size], f"{regime} {phase}")) for phase in PHASES)
                table.rows.append([maker, *times])
            section.tables.append(table)
    size = min(sizes, key=lambda size: abs(np.log(size / ORIGINAL)))
    for regime, memory in zip(REGIMES, ("Each on fresh memory", "Each freed before the next"), strict=True):
        created, used = (units.times(gain(size, f"{regime} {phase}")) for phase in ("create", "total"))
        section.notes.append(
            f"{memory}, {LAZY} of {name(size)} are created {created} as fast as {EAGER}; created, summed and written,"
            f" {used}."
        )
    which = {f"{regime}: {what}": f"{regime} {phase}" for regime in REGIMES for what, phase in
             (("creation alone", "create"), ("with a sum and a write", "total"))}  # fmt: skip
    series = {label: [gain(size, figure) for size in sizes] for label, figure in which.items()}
    title = f"{LAZY} compared with {EAGER}"
    section.pictures.append(Picture(title, lambda axes: lines(axes, sizes, series, "times faster")))
    return section
