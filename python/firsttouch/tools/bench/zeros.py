"""Creating zeros, and what remains of the speed of lazy ones when they are used.

Mark Kittisopikul's "Faster zeros with calloc" (discourse.julialang.org, topic 69860) compared Julia's `zeros`, which
writes the zeros at once, with `calloc`, which NumPy's `zeros` uses, on 1,024 x 1,024 doubles (8 MiB): 1.652 ms against
12.4 us on Windows, 133 times faster, and 474.5 us against 24.3 us under the Windows Subsystem for Linux, 20 times.
This experiment measures what remains of that when the array is summed and written.

No array is freed before the next is created, so each is on memory that is new to the process, as in a program that
keeps its arrays.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import firsttouch as ft
from firsttouch._internal import units
from firsttouch.tools.bench.common import KIB, MIB, Section, Settings, name
from firsttouch.tools.measuring.contenders import DEFAULT
from firsttouch.tools.measuring.processes import ask

Array = np.ndarray[Any, np.dtype[np.float64]]
ARRAYS = 2
FULL, QUICK = (4 * KIB, 64 * KIB, MIB, 8 * MIB, 64 * MIB, 512 * MIB), (4 * KIB, 8 * MIB, 64 * MIB)
ORIGINAL = 8 * MIB
LAZY, EAGER = "np.zeros", "np.empty + fill(0)"
PHASES = ("create", "sum", "write", "total")
KEPT, MOST = 256 * MIB, 1000  # bytes of arrays that are live together, so that each is on new memory; and arrays


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


def measure(maker: str, nbytes: int) -> dict[str, float]:
    """Measure life after life in one process, freeing none before the next."""
    make, items = MAKERS[maker], nbytes // 8
    lives = [life(make, items) for _ in range(max(1, min(MOST, KEPT // nbytes)))]
    medians = np.median([times for times, _ in lives], axis=0)
    return dict(zip(PHASES, medians.tolist(), strict=True))


def run(settings: Settings) -> Section:
    """Measure every way at every size."""
    section = Section("Creating zeros, summing and writing them on new memory")
    sizes = settings.chosen(FULL, QUICK, ARRAYS)
    cells = {
        (name(size), maker): partial(ask, DEFAULT, measure, max(KEPT, 2 * size), maker=maker, nbytes=size)
        for size in sizes
        for maker in MAKERS
    }
    found = section.measure(settings, 1 if settings.quick else 3, cells)
    rows = {key: replies.medians() for key, replies in found.items()}
    section.table("Medians", ["each array", "way"], rows, dict.fromkeys(PHASES, units.seconds))
    nearest = name(min(sizes, key=lambda size: abs(size - ORIGINAL)))
    lazy, eager = (rows[nearest, way] for way in (LAZY, EAGER))
    created, used = (units.times(eager[phase] / lazy[phase]) for phase in ("create", "total"))
    section.notes.append(
        f"{LAZY} of {nearest} are created {created} as fast as {EAGER}; created, summed and written, {used}."
    )
    return section
