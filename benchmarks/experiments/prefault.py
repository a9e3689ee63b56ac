"""Prefault compared with the best of a small C program, and `zeros` with a full write compared with NumPy's."""

from __future__ import annotations

import ctypes
import os
import random
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import firsttouch
from benchmarks.measuring import Plan, against_best, collect, judge
from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call
from firsttouch.tools.measuring.sizes import MIB, fitting, name
from firsttouch.tools.measuring.statistics import Matrix, median

# ---- What is measured, in a process of its own


WAYS = ("slabs", "chunks", "touch", "lazy")
_shuffle = random.Random(0)


@cache
def program() -> Any:
    """Return the C program's function, compiled."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "prefault.so"
        source = Path(__file__).with_suffix(".c")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-pthread", "-o", library, source], check=True)
        function = ctypes.CDLL(str(library)).prefault
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_size_t, *[ctypes.c_int] * 4]
    return function


def limit(nbytes: int, huge: bool, threads: int, way: str, written: bool = False) -> float:
    """Return the seconds of the C program."""
    seconds: float = program()(nbytes, huge, threads, WAYS.index(way), written)
    if seconds < 0:
        raise OSError(f"the C program could not fault in {nbytes} bytes by {way}")
    return seconds


def measure(nbytes: int, huge: bool, threads: int, ways: list[str]) -> dict[str, float]:
    """Return the seconds of each, in an order that is shuffled anew each time."""
    allocator = firsttouch.pages("thp" if huge else False, populate=threads)
    found: dict[str, float] = {}
    for who in _shuffle.sample(("ours", *ways), len(ways) + 1):
        if who == "ours":
            start = time.perf_counter()
            array = allocator.empty(nbytes, np.uint8)
            found[who] = time.perf_counter() - start
            del array
        else:
            found[who] = limit(nbytes, huge, threads, who)
    return found


def write(nbytes: int, threads: int) -> dict[str, float]:
    """Return the seconds for zeros and a full write: by NumPy, on populated huge pages, and by the C program.

    ``"lazy"`` is the C program with pages that the write faults in. ``"written"`` is the write alone, on resident
    memory that has left the cache since, which corresponds to a prefault without any cost.
    """
    allocator = firsttouch.pages(huge="thp", populate=threads)
    makers: dict[str, Callable[[int], Any]] = {"numpy": np.zeros, "ours": allocator.zeros}
    found: dict[str, float] = {}
    for who in _shuffle.sample((*makers, "slabs", "lazy"), 4):
        if who in makers:
            start = time.perf_counter()
            array = makers[who](nbytes // 8)
            made = time.perf_counter()
            array.fill(1.0)
            end = time.perf_counter()
            found[who] = end - start
            if who == "ours":
                found["written"] = end - made
            del array
        else:
            found[who] = limit(nbytes, True, threads, who, written=True)
    return found


# ---- The experiment


#: Size in bytes; ways of the C program; generations and rounds.
SIZES = ((512 * MIB, ("slabs", "chunks", "touch"), Plan(3, 5)), (4096 * MIB, ("slabs", "chunks"), Plan(2, 2)))
QUICK = ((64 * MIB, ("slabs", "chunks", "touch"), Plan(2, 2)),)
WRITTEN = (64 * MIB, 256 * MIB, 1024 * MIB)


def run(quick: bool) -> Section:
    """Measure every size, on base and on huge pages, in one thread and in all."""
    section = Section(
        "prefault",
        "Prefault",
        "pages are faulted in at 0.9 times the best rate of a small C program, with the same pages and threads; "
        "zeros on populated huge pages and a full write in at most 0.6 times NumPy's time. Cells are our time "
        "divided by the column's.",
    )
    _prefault(section, quick)
    _write(section, quick)
    return section


def _prefault(section: Section, quick: bool) -> None:
    ways = QUICK[0][1]
    table = Table("**Faulting in pages**", ["memory", "pages", "threads", "rate", *ways, "the best"])
    sizes = QUICK if quick else SIZES
    kept, notes = fitting([size for size, _, _ in sizes], 1)
    section.notes += notes
    processors = len(os.sched_getaffinity(0))
    best: dict[str, Matrix] = {}
    for size, tried, plan in [each for each in sizes if each[0] in kept]:
        for huge, threads in ((False, 1), (True, 1), (True, processors)):
            arguments = {"nbytes": size, "huge": huge, "threads": threads, "ways": tried}
            call = Call("benchmarks.experiments.prefault", "measure", arguments)
            samples = collect([NUMPY], call, plan, size)
            ours = samples.column(NUMPY, "ours")
            peers = {way: samples.column(NUMPY, way) for way in tried}
            label = f"{name(size)}, {'thp' if huge else 'base'}, {threads}"
            section.raw[label] = samples.replies
            best[label], chosen = against_best(ours, peers)
            rate = f"{size / median(ours).value / 1e9:.1f} GB/s"
            cells = [str(median(ours / peers[way])) if way in tried else "" for way in ways]
            row = [name(size), "thp" if huge else "base", str(threads), rate, *cells]
            table.rows.append([*row, f"{median(best[label])} ({', '.join(sorted(set(chosen)))})"])
    section.tables.append(table)
    section.verdicts.append(judge("our time divided by the best way's: at most 1 / 0.9", 1 / 0.9, best))


def _write(section: Section, quick: bool) -> None:
    parts = ("ours", "the C program, populated", "the C program, lazy", "ours, the write alone")
    table = Table("**zeros and a full write, divided by NumPy's time**", ["array", "NumPy", *parts])
    cells: dict[str, Matrix] = {}
    threads = len(os.sched_getaffinity(0))
    for size in fitting((64 * MIB,) if quick else WRITTEN, 1)[0]:
        call = Call("benchmarks.experiments.prefault", "write", {"nbytes": size, "threads": threads})
        samples = collect([NUMPY], call, Plan(2, 2) if quick else Plan(3, 5 if size < WRITTEN[-1] else 3), size)
        section.raw[f"write {size}"] = samples.replies
        numpy = samples.column(NUMPY, "numpy")
        cells[name(size)] = samples.column(NUMPY, "ours") / numpy
        columns = [samples.column(NUMPY, key) / numpy for key in ("ours", "slabs", "lazy", "written")]
        table.rows.append(
            [name(size), f"{median(numpy).value * 1e3:,.1f} ms", *(str(median(each)) for each in columns)]
        )
    section.tables.append(table)
    section.notes.append(
        "NumPy requests huge pages, too, from 4 MiB on. The kernel zeroes each when the write arrives there, so the "
        "write finds it in the cache; pages that were populated before have left the cache, and the write loads them "
        "again. The C program shows what can be gained nevertheless, and the last column what a prefault without any "
        "cost would gain."
    )
    bar = "`pages(huge='thp', populate=True)`: zeros and a full write at most 0.6 times `np.zeros` and the write"
    section.verdicts.append(judge(bar, 0.6, cells))
