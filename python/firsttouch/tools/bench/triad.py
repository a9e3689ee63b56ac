"""`a = b + c * d` on arrays that were never written: a bandwidth test of a single page.

Georg Hager described it in "Benchmarking fun with calloc() and zero pages" (Georg Hager's Blog, 2007): students ran the
vector triad in C on arrays from `calloc`. Just below 200 MFlop/s was to be expected on the machine; they measured 1.4
GFlop/s, seven times as much, until a loop wrote the same zeros into the arrays first. Pages that were only read are all
the kernel's single zero page, which stays in the cache.

Here the triad goes through the arrays in blocks of 128 KiB, whose product stays in the cache: b, c and d are read once
and a is written once, as by the loop in C. NumPy's `a = b + c * d` as a whole would also write and read a temporary
array, which would hide part of the effect.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any

import numpy as np

import firsttouch as ft
from firsttouch._internal import units
from firsttouch.tools.bench.common import MIB, Section, Settings, name, timed
from firsttouch.tools.measuring.contenders import Contender
from firsttouch.tools.measuring.processes import ask

Array = np.ndarray[Any, np.dtype[np.float64]]
ARRAYS = 5  # resident ones: four written arrays, and the one that the never written arrays are added into
FULL, QUICK = tuple(mib * MIB for mib in (1, 8, 64, 256, 512)), (MIB, 64 * MIB, 256 * MIB)
#: Items per block: its product stays in the processor's own cache, and Python's overhead is a few per cent.
BLOCK = 16384
#: Kinds of pages, and the allocator of each.
KINDS = {"np.zeros": "numpy_default()", "4 KiB pages": "pages()", "huge pages (THP)": 'pages(huge="thp")'}
# Every array comes from the kernel; otherwise glibc would, from 1 MiB on, reuse what another iteration has written.
FRESH = Contender("fresh", {"MALLOC_MMAP_THRESHOLD_": str(128 << 10)})
#: Whether zeros were written into the arrays first.
STATES = ("never written", "written")


def triad(a: Array, b: Array, c: Array, d: Array, product: Array) -> None:
    """Read b, c and d once and write a once, as a loop in C would; two operations per item."""
    for start in range(0, a.size, BLOCK):
        part = slice(start, start + BLOCK)
        here = product[: a[part].size]
        np.multiply(c[part], d[part], out=here)
        np.add(b[part], here, out=a[part])


def measure(nbytes: int, allocator: str, seconds: float) -> dict[str, float]:
    """Return the best rate of each state, in MFlop/s; runs alternate so that disturbances affect both.

    `zero page` is the share of b, c and d on it that were never written.
    """
    arrays = {state: [ft.zeros(nbytes // 8, allocator=allocator) for _ in range(4)] for state in STATES}
    for array in arrays["written"]:
        array.fill(0.0)
    product, faulted, times = np.full(BLOCK, 0.0), 0, {state: list[float]() for state in STATES}
    end = time.perf_counter() + seconds
    while len(times["written"]) < 4 or time.perf_counter() < end:
        for state, (a, b, c, d) in arrays.items():
            took, count, _ = timed(partial(triad, a, b, c, d, product))
            times[state].append(took)
            faulted += count if state == "never written" else 0
    read = arrays["never written"][1:]
    shared = sum(ft.inspect(array).zero_page or 0 for array in read) / sum(array.nbytes for array in read)
    best = {state: nbytes / 4e6 / min(each[1:]) for state, each in times.items()}  # the first faults in a
    return best | {"zero page": shared, "page faults": faulted}


def run(settings: Settings) -> Section:
    """Measure both states on every kind of pages at every size."""
    section = Section("a = b + c * d on arrays that were never written")
    sizes = settings.chosen(FULL, QUICK, ARRAYS)
    rounds, seconds = (2, 0.1) if settings.quick else (5, 0.5)
    cells = {
        (name(size), kind): partial(ask, FRESH, measure, ARRAYS * size, nbytes=size, allocator=each, seconds=seconds)
        for size in sizes
        for kind, each in KINDS.items()
    }
    found = section.measure(settings, rounds, cells)
    rows = {key: each.medians() | {"ratio": each.ratio(*STATES).value} for key, each in found.items()}
    title = "MFlop/s, and what of b, c and d is the zero page if they were never written"
    number = "{:,.0f}".format
    formats = dict.fromkeys(STATES, number) | {
        "ratio": units.digits,
        "zero page": "{:.0%}".format,
        "page faults": number,
    }
    section.table(title, ["each array", "pages"], rows, formats)
    largest = rows[name(sizes[-1]), "4 KiB pages"]
    never, written = (number(largest[state]) for state in STATES)
    section.notes.append(
        f"The zero-page trap: with arrays of {name(sizes[-1])} on 4 KiB pages the triad seems to run at {never}"
        f" MFlop/s; on arrays that were written once it runs at {written}. A warm-up does not help: b, c and d remain"
        " the kernel's single zero page, in the cache. Write arrays before you measure, or call"
        " firsttouch.inspect(b).is_backed."
    )
    return section
