"""Scratch buffers in code compiled by Numba, compared with a slice of a kept array and NumPy's constructor there."""

from __future__ import annotations

import importlib.util
import time
from typing import Any

import numba
import numpy as np

import firsttouch as ft
from benchmarks.measuring import NUMPY, Section, Verdict, collect, judge, median
from firsttouch.tools.measuring.report import Table

# ---- What is measured, in a process of its own

N = 30


def njit(function: Any) -> Any:
    """Compile with Numba; a typed wrapper."""
    return numba.njit(function)


@njit
def scratch(buf: Any, x: Any, use: Any) -> Any:
    """Use a buffer that is passed in."""
    mark = buf.mark()
    total = use(buf.empty(N, np.int64), x)
    buf.rewind(mark)
    return total


@njit
def kept_slice(kept: Any, x: Any, use: Any) -> Any:
    """Use a part of a kept array."""
    return use(kept[:N], x)


@njit
def empty(_: Any, x: Any, use: Any) -> Any:
    """Use a new array."""
    return use(np.empty(N, np.int64), x)


@njit
def summed(y: Any, x: Any) -> Any:
    """Write all items, and sum them."""
    y[:] = x + 1
    return y.sum()


@njit
def one_item(y: Any, x: Any) -> Any:
    """Write one item and read one: what remains is the allocation."""
    y[x[3]] = x[4]
    return y[x[5]]


@njit
def loop(step: Any, use: Any, source: Any, x: Any, turns: int) -> Any:
    """Repeat in compiled code, because calling compiled code from Python costs more than all of this."""
    total = 0
    for _ in range(turns):
        total += step(source, x, use)
    return total


WAYS = {"slice": kept_slice, "slice again": kept_slice, "scratch": scratch, "np.empty": empty}
USES = {"summed": summed, "one item": one_item}


def measure(loops: int) -> dict[str, float]:
    """Return seconds per iteration: the fastest of five short runs; compiled in the first call."""
    buffer, kept, x = ft.ScratchBuffer(), np.empty(1000, np.int64), np.arange(N)
    result: dict[str, float] = {}
    for what, use in USES.items():
        for way, step in WAYS.items():
            source, times = buffer if way == "scratch" else kept, []
            loop(step, use, source, x, 10)
            for _ in range(5):
                start = time.perf_counter()
                loop(step, use, source, x, loops)
                times.append((time.perf_counter() - start) / loops)
            result[f"{what} {way}"] = min(times)
    return result


# ---- The experiment

SLICE, TIMES = 1.1, 5


def run(quick: bool) -> Section:
    """Measure everything repeatedly in one process, in several processes."""
    section = Section(
        "scratch_numba",
        "Scratch buffers inside Numba",
        f"`y = scratch; y[:] = x + 1; y.sum()` on 30 int64 at most {SLICE} times the same with a slice of a kept "
        f"array; the allocation at least {TIMES} times faster than `np.empty` there. Mark and rewind are included.",
    )
    if importlib.util.find_spec("numba") is None:
        section.verdicts.append(Verdict("all", "Numba is not installed", "not measured"))
        return section
    samples = collect([NUMPY], measure, 2 if quick else 8, loops=20_000 if quick else 200_000)
    section.raw["time"] = samples.replies
    column = {key: samples.column(NUMPY, key) for key in samples.replies[NUMPY.name][0]}
    table = Table("**Time of an iteration**", ["30 int64", *WAYS])
    for what in USES:
        table.rows.append([what, *(f"{median(column[f'{what} {way}']).value * 1e9:.1f} ns" for way in WAYS)])
    section.tables.append(table)
    section.notes.append(f"A/A: {median(column['summed slice again'] / column['summed slice'])}.")
    ratio = {"30 int64": column["summed scratch"] / column["summed slice"]}
    section.verdicts.append(judge(f"at most {SLICE} times a slice", SLICE, ratio))
    faster = {"30 int64": column["one item scratch"] / column["one item np.empty"]}
    section.verdicts.append(judge(f"allocation: at most 1/{TIMES} of np.empty's time", 1 / TIMES, faster))
    return section
