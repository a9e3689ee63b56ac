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
from typing import Any

import numpy as np

import firsttouch as ft
from firsttouch._internal import units
from firsttouch.tools.bench.common import (
    FRESH,
    KINDS,
    MIB,
    Cell,
    Section,
    Settings,
    faults,
    lines,
    measured,
    middle,
    name,
    ratio,
)
from firsttouch.tools.measuring.processes import Call
from firsttouch.tools.measuring.report import Picture, Table

Array = np.ndarray[Any, np.dtype[np.float64]]
ARRAYS = 5  # resident ones: four written arrays, and the one that the never written arrays are added into
FULL, QUICK = tuple(mib * MIB for mib in (1, 8, 64, 256, 512)), (MIB, 64 * MIB, 256 * MIB)
#: Items per block: its product stays in the processor's own cache, and Python's overhead is a few per cent.
BLOCK = 16384
#: Whether zeros were written into the arrays first.
STATES = ("never written", "written")


def triad(a: Array, b: Array, c: Array, d: Array, product: Array) -> None:
    """Read b, c and d once and write a once, as a loop in C would; two operations per item."""
    for start in range(0, a.size, BLOCK):
        part = slice(start, start + BLOCK)
        here = product[: a[part].size]
        np.multiply(c[part], d[part], out=here)
        np.add(b[part], here, out=a[part])


def share(arrays: list[Array], state: str) -> float:
    """Return the share of b, c and d, which are only read, that is `absent` or on the `zero_page`."""
    nbytes = sum(array.nbytes for array in arrays[1:])
    return sum(getattr(ft.inspect(array), state) or 0 for array in arrays[1:]) / nbytes


def measure(nbytes: int, allocator: str, seconds: float) -> dict[str, float]:
    """Return the best time of each state; runs alternate so that disturbances affect both."""
    arrays = {state: [ft.zeros(nbytes // 8, allocator=allocator) for _ in range(4)] for state in STATES}
    for array in arrays["written"]:
        array.fill(0.0)
    reply = {"absent": share(arrays["never written"], "absent"), "faults": 0.0}
    product, times = np.full(BLOCK, 0.0), {state: list[float]() for state in STATES}
    end = time.perf_counter() + seconds
    while len(times["written"]) < 4 or time.perf_counter() < end:
        for state, (a, b, c, d) in arrays.items():
            before, start = faults(), time.perf_counter()
            triad(a, b, c, d, product)
            times[state].append(time.perf_counter() - start)
            reply["faults"] += faults() - before if state == "never written" else 0
    reply["zero page"] = share(arrays["never written"], "zero_page")
    return reply | {state: min(each[1:]) for state, each in times.items()}  # the first faults in a


def run(settings: Settings) -> Section:
    """Measure both states on every kind of pages at every size."""
    section = Section("triad", "a = b + c * d on arrays that were never written")
    sizes = settings.chosen(FULL, QUICK, ARRAYS)
    rounds, seconds = (2, 0.1) if settings.quick else (5, 0.5)
    cells = {
        (kind, size): Cell(
            Call(__name__, "measure", {"nbytes": size, "allocator": expression, "seconds": seconds}), 5 * size, FRESH
        )
        for kind, expression in KINDS.items()
        for size in sizes
    }
    found = measured(cells, rounds, settings.progress)
    section.raw = {f"{kind}, {size}": replies for (kind, size), replies in found.items()}
    columns = ["each array", "pages", *STATES, "ratio", "absent before", "zero page after", "page faults"]
    table = Table("MFlop/s, and where b, c and d lie that were never written", columns)
    rates = {
        (kind, size, state): 2 * (size // 8) / middle(replies, state) / 1e6
        for (kind, size), replies in found.items()
        for state in STATES
    }
    for size in sizes:
        for kind in KINDS:
            replies = found[kind, size]
            speeds = [f"{rates[kind, size, state]:,.0f}" for state in STATES]
            times = units.digits(ratio(replies, replies, "written", "never written").value)
            where = [units.share(middle(replies, what), 1) for what in ("absent", "zero page")]
            table.rows.append([name(size), kind, *speeds, times, *where, f"{middle(replies, 'faults'):,.0f}"])
    section.tables.append(table)
    kind, size = "4 KiB pages", max(sizes)
    never, written = (f"{rates[kind, size, state]:,.0f}" for state in STATES)
    section.notes.append(
        f"The zero-page trap: with arrays of {name(size)} on {kind} the triad seems to run at {never} MFlop/s; on"
        f" arrays that were written once it runs at {written}. A warm-up does not help: b, c and d remain the kernel's"
        " single zero page, in the cache. Write arrays before you measure, or call firsttouch.inspect(b).is_backed."
    )
    series = {f"{state}, {kind}": [rates[kind, size, state] for size in sizes] for state in STATES for kind in KINDS}
    title = "a = b + c * d in doubles: the same zeros, the same result"
    section.pictures.append(Picture(title, lambda axes: lines(axes, sizes, series, "MFlop/s")))
    return section
