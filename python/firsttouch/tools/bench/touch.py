"""The rate of first touches: by page size, by method, by threads.

Daniel Lemire measured it in C++ in January 2020 (github.com/lemire/Code-used-on-Daniel-Lemire-s-blog, 2020/01/14, "new
char[s] + touch"), with 512 MB: allocating and touching one byte of each page ran at 3.8 GB/s with pages of 4 KiB and at
19.6 GB/s with transparent huge pages; memset of resident memory ran at 30 GB/s and memcpy at 12.5. (His GB are 2**30
bytes, and memcpy counts what it copies once; so does this experiment, but with GB of 10**9.)

Rates of new memory include the allocation. NumPy's `fill` is a memset, its `copyto` a memcpy.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import firsttouch as ft
from firsttouch._internal import units
from firsttouch.tools.bench.common import MIB, Section, Settings, name, timed
from firsttouch.tools.measuring.contenders import DEFAULT
from firsttouch.tools.measuring.machine import processors
from firsttouch.tools.measuring.processes import ask

ARRAYS, FULL, QUICK = 3, 512 * MIB, 128 * MIB
#: The arguments of `pages(huge=...)`.
KINDS: dict[str, Any] = {"4 KiB pages": False, "THP": "thp", "2 MiB from the pool": "2M"}
#: What is done to NumPy's own memory.
OWN, WAYS = "np.empty", ("memset", "memset, resident", "memcpy, resident")


def reply(seconds: float, array: Any) -> dict[str, Any]:
    """Return the rate, the share of huge pages, and why there are others."""
    receipt, huge = ft.receipt(array), (ft.inspect(array).huge or 0) / array.size
    return {"rate": array.size / seconds, "huge pages": huge, "why not": list(receipt.why_not) if receipt else []}


def placed(nbytes: int, huge: Any, threads: int) -> dict[str, Any]:
    """Measure pages of one kind, populated by some threads, or touched where there are none."""

    def make() -> Any:
        array = ft.pages(huge=huge, populate=threads or False).empty(nbytes, np.uint8)
        if not threads:
            array[:: mmap.PAGESIZE] = 1
        return array

    seconds, _, array = timed(make)
    return reply(seconds, array)


def own(nbytes: int, way: str) -> dict[str, Any]:
    """Measure NumPy's own memory, which is new unless the way says that it is resident."""
    source, kept = (np.full(nbytes, value, np.uint8) for value in (1, 2))

    def write() -> Any:
        array = kept if way.endswith("resident") else np.empty(nbytes, np.uint8)
        if way.startswith("memcpy"):
            np.copyto(array, source)
        else:
            array.fill(3)
        return array

    seconds, _, array = timed(write)
    return reply(seconds, array)


def run(settings: Settings) -> Section:
    """Measure every way once per round."""
    section = Section("First touch of memory, by page size, method and threads")
    sizes = settings.chosen((FULL,), (QUICK,), ARRAYS)
    cells: dict[tuple[str, str, str], Callable[[], Any]] = {}
    for size in sizes:
        for kind, huge in KINDS.items():
            for threads in sorted({0, 1, processors()}):
                way = f"populated, {units.count(threads, 'thread')}" if threads else "touched"
                arguments = {"nbytes": size, "huge": huge, "threads": threads}
                cells[name(size), kind, way] = partial(ask, DEFAULT, placed, size, **arguments)
        cells |= {(name(size), OWN, way): partial(ask, DEFAULT, own, 3 * size, nbytes=size, way=way) for way in WAYS}
    found = section.measure(settings, 2 if settings.quick else 3, cells)
    refused = {key: [reason for one in replies for reason in one.pop("why not")] for key, replies in found.items()}
    rows = {key: replies.medians() for key, replies in found.items()}
    formats = {"rate": units.rate, "huge pages": "{:.0%}".format}
    section.table("Writing each page once", ["each array", "memory", "way"], rows, formats)
    section.notes += sorted(
        {f"{key[1]}, {key[0]}: {reason}." for key, reasons in refused.items() for reason in reasons}
    )
    granted = {key: row for key, row in rows.items() if not refused[key]}  # where refused, others were measured
    for each in map(name, sizes):
        ordered = sorted((row["rate"], kind, way) for (of, kind, way), row in granted.items() if of == each)
        best = {kind: f"{units.rate(rate)} on {kind} ({way})" for rate, kind, way in ordered if kind != OWN}
        new, old = (rows[each, OWN, way]["rate"] for way in WAYS[:2])
        section.notes.append(
            f"Best rates of first touch, {each} at a time: {units.listed(list(best.values()))}. A memset of new memory"
            f" runs at {units.rate(new)}, of resident memory at {units.rate(old)}, {units.times(old / new)} as fast."
        )
    return section
