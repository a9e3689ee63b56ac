"""The rate of first touches: by page size, by method, by threads, by settings of the C library.

Daniel Lemire measured it in C++ in January 2020 (github.com/lemire/Code-used-on-Daniel-Lemire-s-blog, 2020/01/14, "new
char[s] + touch"), with 512 MB: allocating and touching one byte of each page ran at 3.8 GB/s with pages of 4 KiB and at
19.6 GB/s with transparent huge pages; memset of resident memory ran at 30 GB/s and memcpy at 12.5. (His GB are 2**30
bytes, and memcpy counts what it copies once; so does this experiment, but with GB of 10**9.)

The rows of new memory include the allocation. `malloc` is glibc's; it is configured by environment variables, which
have the effect of `mallopt`.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import firsttouch as ft
from _firsttouch_start import units
from firsttouch.tools.bench.common import Cell, Settings, measured, middle
from firsttouch.tools.measuring.contenders import NUMPY, TUNED, Contender
from firsttouch.tools.measuring.report import Picture, Section, Table
from firsttouch.tools.measuring.rounds import Call
from firsttouch.tools.measuring.sizes import MIB, name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = np.ndarray[Any, np.dtype[np.uint8]]
ARRAYS, FULL, QUICK = 2, 512 * MIB, 128 * MIB
PAGE = os.sysconf("SC_PAGE_SIZE")
#: The arguments of `pages(huge=...)`.
KINDS: dict[str, Any] = {"4 KiB pages": False, "THP": "thp", "2 MiB from the pool": ["2M"]}
#: Settings of glibc, with their environment; the tunable advises huge pages since 2.35.
LIBRARY = {
    "glibc": NUMPY,
    "glibc, never mapped or trimmed": Contender("tuned", TUNED),
    "glibc, hugetlb=1 (THP)": Contender("thp", {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}),
}
#: A memset of new memory cannot be faster than one of resident memory, except for noise: the kernel clears it first.
NOISE = 1.25
#: By memory and way.
Found = Mapping[tuple[str, str], list[dict[str, Any]]]


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
    return {
        "rate": array.size / seconds,
        "missing": ((found.absent or 0) + (found.zero_page or 0)) / array.size,
        "huge": (found.huge or 0) / array.size,
        "why not": list(receipt.why_not) if receipt else [],
    }


def placed(nbytes: int, huge: Any, populate: int, threads: int) -> dict[str, Any]:
    """Measure pages of one kind, populated or touched by some threads."""
    allocator = ft.pages(huge=tuple(huge) if isinstance(huge, list) else huge, populate=populate or False)
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


WAYS = ("touched", "memset", "memset, existing", "memcpy, existing")


def cells(size: int, processors: int, quick: bool) -> dict[tuple[str, str], Cell]:
    """Return all cells of a size; a quick run omits the settings of the C library."""
    made: dict[tuple[str, str], Cell] = {}
    counts = sorted({1, processors})
    for kind, huge in KINDS.items():
        for way in ("touched", "populated"):
            for threads in counts:
                arguments = {
                    "nbytes": size, "huge": huge, "populate": threads if way == "populated" else 0, "threads": threads
                }  # fmt: skip
                row = f"{way}, {units.count(threads, 'thread')}"
                made[kind, row] = Cell(Call(__name__, "placed", arguments), size)
    for memory, contender in list(LIBRARY.items())[: 1 if quick else None]:
        for way in WAYS:
            made[memory, way] = Cell(Call(__name__, "library", {"nbytes": size, "way": way}), 2 * size, contender)
    return made


def run(settings: Settings) -> Section:
    """Measure every cell once per round."""
    section = Section(
        "touch",
        "First touch of memory",
        "how many bytes per second can be written for the first time, by page size, method, threads and settings of "
        "the C library, compared with resident memory? *Touched* means that a byte of each page is written. Medians "
        "over fresh processes.",
    )
    wanted, section.notes = settings.chosen((FULL,), (QUICK,), ARRAYS)
    for at, size in enumerate(wanted):
        progress = partial(lambda at, done: settings.progress((at + done) / len(wanted)), at)
        found = measured(
            cells(size, len(os.sched_getaffinity(0)), settings.quick), 2 if settings.quick else 3, progress
        )
        section.raw[name(size)] = {str(key): replies for key, replies in found.items()}
        table = Table(f"**{name(size)}**", ["memory", "way", "rate", "huge pages"])
        for (memory, way), replies in found.items():
            huge = units.share(middle(replies, "huge"), 1)
            table.rows.append([memory, way, units.rate(middle(replies, "rate")), huge])
        section.tables.append(table)
        section.notes += [answer(size, found), *doubts(found)]
        title = f"Bytes per second, {name(size)} of memory"
        section.pictures.append(Picture(f"{size >> 20}", title, partial(rates, found=found), height=6))
    return section


def answer(size: int, found: Found) -> str:
    """Return the best rate of each kind of pages, and new memory compared with resident memory."""
    best: list[str] = []
    for kind in KINDS:
        rates = {way: middle(replies, "rate") for (memory, way), replies in found.items() if memory == kind}
        way = max(rates, key=lambda one: rates[one])
        best.append(f"{units.rate(rates[way])} on {kind} ({way})")
    new, old = (middle(found["glibc", way], "rate") for way in ("memset", "memset, existing"))
    return (
        f"**Best rates of first touch**, {name(size)} at a time: {units.listed(best)}. A memset of new memory runs at "
        f"{units.rate(new)}, of resident memory at {units.rate(old)}, {units.times(old / new)} as fast."
    )


def doubts(found: Found) -> list[str]:
    """Report huge pages that were not obtained, work that was not done, and implausible rates."""
    said: list[str] = []
    for kind in list(KINDS)[1:]:
        replies = [reply for (memory, _), each in found.items() if memory == kind for reply in each]
        fallen = [reply for reply in replies if reply["huge"] < 0.9]
        if fallen:
            reasons = sorted({reason for reply in fallen for reason in reply["why not"]})
            why = f": {'; '.join(reasons)}" if reasons else ""
            said.append(f"{kind}: {len(fallen)} of {len(replies)} runs got other pages{why}.")
    for (memory, way), each in found.items():
        if missing := middle(each, "missing"):
            said.append(f"**Not written**: {memory}, {way}: {units.share(missing, 1)} was never written.")
    for memory in {memory for memory, _ in found} & set(LIBRARY):
        new, old = (middle(found[memory, way], "rate") for way in ("memset", "memset, existing"))
        if new > NOISE * old:
            said.append(
                f"**Implausible**, {memory}: a memset of new memory at {units.rate(new)} is faster than one of "
                f"resident memory ({units.rate(old)}), though the kernel has to clear it first."
            )
    return said


def rates(axes: Axes, found: Found) -> None:
    """Plot the rates; the longest bars at the top, the C library's memory in grey."""
    shown = sorted(((middle(each, "rate") / 1e9, f"{way} ({memory})") for (memory, way), each in found.items()))
    colours = ["0.35" if "glibc" in label else "tab:blue" for _, label in shown]
    drawn = axes.barh([label for _, label in shown], [rate for rate, _ in shown], color=colours)
    axes.bar_label(drawn, fmt="%.1f", padding=2, fontsize="x-small")
    axes.set(xscale="log", xlabel="GB/s; grey: the C library, one thread")
    axes.tick_params(axis="y", labelsize="x-small")
