"""The rate of first touches: by page size, by method, by threads.

Daniel Lemire measured it in C++ in January 2020 (github.com/lemire/Code-used-on-Daniel-Lemire-s-blog, 2020/01/14, "new
char[s] + touch"), with 512 MB: allocating and touching one byte of each page ran at 3.8 GB/s with pages of 4 KiB and at
19.6 GB/s with transparent huge pages; memset of resident memory ran at 30 GB/s and memcpy at 12.5. (His GB are 2**30
bytes, and memcpy counts what it copies once; so does this experiment, but with GB of 10**9.)

Rates of new memory include the allocation. NumPy's `fill` is a memset, its `copyto` a memcpy.
"""

from __future__ import annotations

import mmap
import threading
import time
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

import firsttouch as ft
from firsttouch._internal import units
from firsttouch.tools.bench.common import MIB, Cell, Section, Settings, middle, name
from firsttouch.tools.measuring.machine import processors
from firsttouch.tools.measuring.report import Picture, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = np.ndarray[Any, np.dtype[np.uint8]]
ARRAYS, FULL, QUICK = 3, 512 * MIB, 128 * MIB
PAGE = mmap.PAGESIZE
#: The arguments of `pages(huge=...)`.
KINDS: dict[str, Any] = {"4 KiB pages": False, "THP": "thp", "2 MiB from the pool": "2M"}
#: What is done to NumPy's own memory.
OWN, WAYS = "np.empty", ("memset", "memset, resident", "memcpy, resident")


def touched(array: Array, threads: int) -> None:
    """Write one byte of each page, divided among threads."""
    cuts = [array.size * number // threads // PAGE * PAGE for number in range(threads)] + [array.size]

    def part(number: int) -> None:
        array[cuts[number] : cuts[number + 1] : PAGE] = 1

    others = [threading.Thread(target=part, args=(number,)) for number in range(1, threads)]
    for thread in others:
        thread.start()
    part(0)
    for thread in others:
        thread.join()


def result(array: Array, seconds: float) -> dict[str, Any]:
    """Return the rate, the share of huge pages, and why there are others."""
    receipt = ft.receipt(array)
    huge = (ft.inspect(array).huge or 0) / array.size
    return {"rate": array.size / seconds, "huge": huge, "why not": list(receipt.why_not) if receipt else []}


def placed(nbytes: int, huge: Any, populate: bool, threads: int) -> dict[str, Any]:
    """Measure pages of one kind, populated or touched by some threads."""
    allocator = ft.pages(huge=huge, populate=threads if populate else False)
    start = time.perf_counter()
    array: Array = allocator.empty(nbytes, np.uint8)
    if not populate:
        touched(array, threads)
    return result(array, time.perf_counter() - start)


def own(nbytes: int, way: str) -> dict[str, Any]:
    """Measure NumPy's own memory, which is new unless the way says that it is resident."""
    source, kept = (np.full(nbytes, value, np.uint8) for value in (1, 2))
    start = time.perf_counter()
    array = kept if way.endswith("resident") else np.empty(nbytes, np.uint8)
    if way.startswith("memcpy"):
        np.copyto(array, source)
    else:
        array.fill(3)
    return result(array, time.perf_counter() - start)


def run(settings: Settings) -> Section:
    """Measure every way once per round."""
    section = Section("touch", "First touch of memory, by page size, method and threads")
    sizes = settings.chosen((FULL,), (QUICK,), ARRAYS)
    cells: dict[tuple[int, str, str], Cell] = {}
    for size in sizes:
        for (kind, huge), populate, threads in product(KINDS.items(), (False, True), sorted({1, processors()})):
            way = f"{'populated' if populate else 'touched'}, {units.count(threads, 'thread')}"
            cells[size, kind, way] = Cell(placed, size, nbytes=size, huge=huge, populate=populate, threads=threads)
        cells |= {(size, OWN, way): Cell(own, 3 * size, nbytes=size, way=way) for way in WAYS}
    found = section.measure(cells, 2 if settings.quick else 3, settings)
    table = Table("Writing each page once", ["each array", "memory", "way", "rate", "huge pages"])
    rates = {key: middle(replies, "rate") for key, replies in found.items()}
    for (size, kind, way), replies in found.items():
        huge_share = units.share(middle(replies, "huge"), 1)
        table.rows.append([name(size), kind, way, units.rate(rates[size, kind, way]), huge_share])
    section.tables.append(table)
    reasons = {
        f"{kind}, {name(size)}: {reason}."
        for (size, kind, _), replies in found.items()
        for reply in replies
        for reason in reply["why not"]
    }
    section.notes += sorted(reasons)
    for size in sizes:
        # Of pages that were refused, others were measured.
        shown = {
            (kind, way): rate
            for (each, kind, way), rate in rates.items()
            if each == size and not any(reply["why not"] for reply in found[each, kind, way])
        }
        kinds = [kind for kind in KINDS if any(memory == kind for memory, _ in shown)]
        best = [max((rate, way) for (memory, way), rate in shown.items() if memory == kind) for kind in kinds]
        said = [f"{units.rate(rate)} on {kind} ({way})" for kind, (rate, way) in zip(kinds, best, strict=True)]
        new, old = (shown[OWN, way] for way in WAYS[:2])
        section.notes.append(
            f"Best rates of first touch, {name(size)} at a time: {units.listed(said)}. A memset of new memory runs at"
            f" {units.rate(new)}, of resident memory at {units.rate(old)}, {units.times(old / new)} as fast."
        )
        section.pictures.append(drawn(f"First and later writes of {name(size)}", shown))
    return section


def drawn(title: str, rates: dict[tuple[str, str], float]) -> Picture:
    """Return a picture of the rates, the highest at the top; those of NumPy's own memory are grey."""

    def draw(axes: Axes) -> None:
        shown = sorted((rate / 1e9, f"{way} ({memory})") for (memory, way), rate in rates.items())
        colours = ["0.35" if OWN in label else "tab:blue" for _, label in shown]
        bars = axes.barh([label for _, label in shown], [rate for rate, _ in shown], color=colours)
        axes.bar_label(bars, fmt="%.1f", padding=2, fontsize="x-small")
        axes.set(xscale="log", xlabel="GB/s")
        axes.tick_params(axis="y", labelsize="x-small")

    return Picture(title, draw, height=6)
