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
from firsttouch.tools.bench.common import KIB, MIB, Cell, Section, Settings, lines, middle, name
from firsttouch.tools.measuring.report import Table

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
    effort: dict[str, Any] = {"seconds": 0.03, "most": 50} if settings.quick else {"seconds": 0.2, "most": 1000}
    cells = {
        (maker, size): Cell(measure, max(KEPT, 2 * size), maker=maker, nbytes=size, **effort)
        for maker in MAKERS
        for size in sizes
    }
    found = section.measure(cells, 1 if settings.quick else 3, settings)

    def gain(size: int, figure: str) -> float:
        return middle(found[EAGER, size], figure) / middle(found[LAZY, size], figure)

    nearest, series = min(sizes, key=lambda size: abs(np.log(size / ORIGINAL))), dict[str, list[float]]()
    for regime in REGIMES:
        for size in sizes:
            table = Table(f"{name(size)}, {regime} memory, medians", ["way", *PHASES])
            for maker in MAKERS:
                times = (units.seconds(middle(found[maker, size], f"{regime} {phase}")) for phase in PHASES)
                table.rows.append([maker, *times])
            section.tables.append(table)
        created, used = (units.times(gain(nearest, f"{regime} {phase}")) for phase in ("create", "total"))
        section.notes.append(
            f"On {regime} memory, {LAZY} of {name(nearest)} are created {created} as fast as {EAGER}; created, summed"
            f" and written, {used}."
        )
        series |= {f"{regime}: {phase}": [gain(size, f"{regime} {phase}") for size in sizes] for phase in PHASES[::3]}
    section.pictures.append(lines(f"{LAZY} compared with {EAGER}", sizes, series, "times faster"))
    return section
