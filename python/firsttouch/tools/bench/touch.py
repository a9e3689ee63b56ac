"""The rate of first touches: by page size, by method, by threads.

Daniel Lemire measured it in C++ in January 2020 (github.com/lemire/Code-used-on-Daniel-Lemire-s-blog, 2020/01/14, "new
char[s] + touch"), with 512 MB: allocating and touching one byte of each page ran at 3.8 GB/s with pages of 4 KiB and at
19.6 GB/s with transparent huge pages; memset of resident memory ran at 30 GB/s and memcpy at 12.5. (His GB are 2**30
bytes, and memcpy counts what it copies once; so does this experiment, but with GB of 10**9.)

The rows of new memory include the allocation. `malloc` is glibc's, and on Windows that of the Universal C Runtime.
"""

from __future__ import annotations

import ctypes
import mmap
import threading
import time
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

import firsttouch as ft
from firsttouch._internal import units
from firsttouch.tools.bench.common import MIB, Cell, Section, Settings, measured, middle, name
from firsttouch.tools.measuring.contenders import HAS_GLIBC
from firsttouch.tools.measuring.machine import processors
from firsttouch.tools.measuring.processes import Call
from firsttouch.tools.measuring.report import Picture, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = np.ndarray[Any, np.dtype[np.uint8]]
ARRAYS, FULL, QUICK = 2, 512 * MIB, 128 * MIB
PAGE = mmap.PAGESIZE
#: The arguments of `pages(huge=...)`.
KINDS: dict[str, Any] = {"4 KiB pages": False, "THP": "thp", "2 MiB from the pool": "2M"}
C_LIBRARY = "glibc" if HAS_GLIBC else "the C library"
WAYS = ("touched", "memset", "memset, existing", "memcpy, existing")


def touched(array: Array, threads: int = 1) -> None:
    """Write one byte of each page, divided among threads."""
    cuts = [array.size * number // threads // PAGE * PAGE for number in range(threads)] + [array.size]

    def part(number: int) -> None:
        array[cuts[number] : cuts[number + 1] : PAGE] = 1

    others = [threading.Thread(target=part, args=(number,)) for number in range(1, threads)]
    for thread in others:
        thread.start()
    part(0)
    array[-1] = 1  # an array that begins within a page extends to one more
    for thread in others:
        thread.join()


def result(array: Array, seconds: float) -> dict[str, Any]:
    """Return the rate, and the residency of the array: a way that left out pages did not do the work."""
    found, receipt = ft.inspect(array), ft.receipt(array)
    missing = ((found.absent or 0) + (found.zero_page or 0)) / array.size
    if missing:
        raise RuntimeError(f"{units.share(missing, 1)} was never written")
    why_not = list(receipt.why_not) if receipt else []
    return {"rate": array.size / seconds, "huge": (found.huge or 0) / array.size, "why not": why_not}


def placed(nbytes: int, huge: Any, populate: int, threads: int) -> dict[str, Any]:
    """Measure pages of one kind, populated or touched by some threads."""
    allocator = ft.pages(huge=huge, populate=populate or False)
    start = time.perf_counter()
    array: Array = allocator.empty(nbytes, np.uint8)
    if not populate:
        touched(array, threads)
    return result(array, time.perf_counter() - start)


def library(nbytes: int, way: str) -> dict[str, Any]:
    """Measure memory of the C library: new, and touched or set; or existing, and set or copied."""
    make = ft.malloc().empty
    source: Array = np.ones(nbytes if way == "memcpy, existing" else 1, np.uint8)
    array: Array = make(nbytes, np.uint8)
    if "existing" in way:
        array.fill(1)
    else:
        del array
    start = time.perf_counter()
    if "existing" not in way:
        array = make(nbytes, np.uint8)
    if way == "touched":
        touched(array)
    elif way == "memcpy, existing":
        ctypes.memmove(array.ctypes.data, source.ctypes.data, nbytes)
    else:
        ctypes.memset(array.ctypes.data, 2, nbytes)
    return result(array, time.perf_counter() - start)


def cells(size: int, processors: int) -> dict[tuple[str, str], Cell]:
    """Return all cells of a size."""
    made: dict[tuple[str, str], Cell] = {}
    for (kind, huge), way, threads in product(KINDS.items(), ("touched", "populated"), sorted({1, processors})):
        arguments = {"nbytes": size, "huge": huge, "populate": threads if way == "populated" else 0, "threads": threads}
        made[kind, f"{way}, {units.count(threads, 'thread')}"] = Cell(Call(__name__, "placed", arguments), size)
    for way in WAYS:
        made[C_LIBRARY, way] = Cell(Call(__name__, "library", {"nbytes": size, "way": way}), 2 * size)
    return made


def run(settings: Settings) -> Section:
    """Measure every cell once per round."""
    section = Section("touch", "First touch of memory, by page size, method and threads")
    sizes = settings.chosen((FULL,), (QUICK,), ARRAYS)
    for at, size in enumerate(sizes):
        progress = partial(lambda at, done: settings.progress((at + done) / len(sizes)), at)
        every = cells(size, processors())
        found = measured(every, 2 if settings.quick else 3, progress)
        section.raw[name(size)] = {", ".join(key): replies for key, replies in found.items()}
        rates = {key: middle(replies, "rate") for key, replies in found.items()}
        table = Table(f"{name(size)}", ["memory", "way", "rate", "huge pages"])
        for (memory, way), replies in found.items():
            huge = units.share(middle(replies, "huge"), 1)
            table.rows.append([memory, way, units.rate(rates[memory, way]), huge])
        section.tables.append(table)
        best = [max((rate, way) for (memory, way), rate in rates.items() if memory == kind) for kind in KINDS]
        said = [f"{units.rate(rate)} on {kind} ({way})" for kind, (rate, way) in zip(KINDS, best, strict=True)]
        section.notes.append(f"Best rates of first touch, {name(size)} at a time: {units.listed(said)}.")
        new, old = (rates[C_LIBRARY, way] for way in ("memset", "memset, existing"))
        section.notes.append(
            f"A memset of new memory runs at {units.rate(new)}, of resident memory at {units.rate(old)},"
            f" {units.times(old / new)} as fast."
        )
        for kind in list(KINDS)[1:]:
            replies = [reply for (memory, _), each in found.items() if memory == kind for reply in each]
            fallen = [reply for reply in replies if reply["huge"] < 0.9]
            if fallen:
                reasons = "; ".join(sorted({reason for reply in fallen for reason in reply["why not"]}))
                section.notes.append(f"{kind}: {len(fallen)} of {len(replies)} runs got other pages: {reasons}.")
        title = f"First and later writes of {name(size)}; grey: the C library, one thread"
        section.pictures.append(Picture(title, partial(draw, rates=rates), height=6))
    return section


def draw(axes: Axes, rates: dict[tuple[str, str], float]) -> None:
    """Plot the rates, the longest bars at the top."""
    shown = sorted((rate / 1e9, f"{way} ({memory})") for (memory, way), rate in rates.items())
    colours = ["0.35" if C_LIBRARY in label else "tab:blue" for _, label in shown]
    drawn = axes.barh([label for _, label in shown], [rate for rate, _ in shown], color=colours)
    axes.bar_label(drawn, fmt="%.1f", padding=2, fontsize="x-small")
    axes.set(xscale="log", xlabel="GB/s")
    axes.tick_params(axis="y", labelsize="x-small")
