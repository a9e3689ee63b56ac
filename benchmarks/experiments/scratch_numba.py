"""Scratch buffers in code compiled by Numba, compared with a slice of a kept array and NumPy's constructor there."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

import firsttouch as ft
from benchmarks.measuring import Plan, Section, Verdict, collect, judge, median
from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.processes import Call
from firsttouch.tools.measuring.report import Table

# ---- What is measured, in a process of its own


def njit(function: Any) -> Any:
    """Compile with Numba; a typed wrapper."""
    return numba.njit(function)


@njit
def scratch_loop(buf: Any, x: Any) -> Any:
    """Use a buffer that is passed in."""
    mark = buf.mark()
    y = buf.empty(x.size, np.int64)
    for i in range(x.size):
        y[i] = x[i] + 1
    total = y.sum()
    buf.rewind(mark)
    return total


@njit
def slice_loop(kept: Any, x: Any) -> Any:
    """Use a part of a kept array."""
    y = kept[: x.size]
    for i in range(x.size):
        y[i] = x[i] + 1
    return y.sum()


@njit
def empty_loop(_: Any, x: Any) -> Any:
    """Use a new array."""
    y = np.empty(x.size, np.int64)
    for i in range(x.size):
        y[i] = x[i] + 1
    return y.sum()


def repeated(step: Any) -> Any:
    """Return a loop in compiled code, because calling compiled code from Python costs more than all of this."""

    @njit
    def loop(source: Any, x: Any, turns: int) -> Any:
        total = 0
        for _ in range(turns):
            total += step(source, x)
        return total

    return loop


N = 30
CHUNK, TEMPORARY = 65536, 512  # bytes of a cursor's first chunk; number of 8-byte items


@njit
def scratch_step(buf: Any, x: Any) -> Any:
    mark = buf.mark()
    y = buf.empty(N, np.int64)
    y[:] = x + 1
    total = y.sum()
    buf.rewind(mark)
    return total


@njit
def slice_step(kept: Any, x: Any) -> Any:
    y = kept[:N]
    y[:] = x + 1
    return y.sum()


@njit
def empty_step(_: Any, x: Any) -> Any:
    y = np.empty(N, np.int64)
    y[:] = x + 1
    return y.sum()


@njit
def scratch_only(buf: Any, x: Any) -> Any:
    mark = buf.mark()
    y = buf.empty(N, np.int64)
    y[x[3]] = x[4]
    total = y[x[5]]
    buf.rewind(mark)
    return total


@njit
def slice_only(kept: Any, x: Any) -> Any:
    y = kept[:N]
    y[x[3]] = x[4]
    return y[x[5]]


@njit
def empty_only(_: Any, x: Any) -> Any:
    y = np.empty(N, np.int64)
    y[x[3]] = x[4]
    return y[x[5]]


@njit
def in_chunk(buf: Any, turns: int, filled: int) -> Any:
    buf.empty(filled, np.int8)
    total = 0.0
    for turn in range(turns):
        mark = buf.mark()
        y = buf.empty(TEMPORARY)
        for i in range(TEMPORARY):
            y[i] = turn
        total += y[7]
        buf.rewind(mark)
    return total


@njit
def escaping_scratch(buf: Any, count: int) -> Any:
    result = []
    for _ in range(count):
        mark = buf.mark()
        result.append(buf.empty(N, np.int64))
        buf.rewind(mark)
    return len(result)


@njit
def escaping_copies(buf: Any, count: int) -> Any:
    result = []
    for _ in range(count):
        mark = buf.mark()
        result.append(buf.empty(N, np.int64).copy())
        buf.rewind(mark)
    return len(result)


@njit
def escaping_empty(buf: Any, count: int) -> Any:
    result = []
    for _ in range(count):
        mark = buf.mark()
        result.append(np.empty(N, np.int64))
        buf.rewind(mark)
    return len(result)


STEPS = {
    "scratch": scratch_step,
    "slice": slice_step,
    "slice again": slice_step,
    "np.empty": empty_step,
    "loop scratch": scratch_loop,
    "loop slice": slice_loop,
    "loop np.empty": empty_loop,
    "only scratch": scratch_only,
    "only slice": slice_only,
    "only np.empty": empty_only,
}
LOOPS: dict[str, Any] = {}


def best(turns: int, run: Callable[[], object]) -> float:
    """Return seconds per iteration: the fastest of five short runs, to exclude interruptions."""
    times: list[float] = []
    for _ in range(5):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) / turns)
    return min(times)


def measure(loops: int) -> dict[str, float]:
    """Return seconds per iteration of everything; compiled in the first call."""
    if not LOOPS:
        loop_of = {step: repeated(step) for step in STEPS.values()}
        LOOPS.update({name: loop_of[step] for name, step in STEPS.items()})
    buffer, kept, x = ft.ScratchBuffer(), np.empty(1000, np.int64), np.arange(N)
    result: dict[str, float] = {}
    for name, loop in LOOPS.items():
        source = buffer if "scratch" in name else kept
        loop(source, x, 10)
        result[name] = best(loops, lambda loop=loop, source=source: loop(source, x, loops))  # type: ignore[misc]
    for name, filled in {"middle": CHUNK // 4, "edge": CHUNK - 2048}.items():
        in_chunk(buffer, 10, 1)
        # Filled in pieces that have no memory of their own.
        result[name] = best(loops, lambda filled=filled: at_edge(buffer, loops, filled))  # type: ignore[misc]
    for name, escaping in {"keep": escaping_scratch, "copy": escaping_copies, "none": escaping_empty}.items():
        escaping(buffer, 10)
        result[name] = best(1000, lambda escaping=escaping: escaping(buffer, 1000))  # type: ignore[misc]
    return result


@njit
def at_edge(buf: Any, turns: int, filled: int) -> Any:
    pieces = 0
    for _ in range(filled // 2048):
        pieces += buf.empty(2048, np.int8).size
    return pieces + in_chunk(buf, turns, 1)


# ---- The experiment


SLICE, TIMES, EDGE = 1.5, 5, 1.1
TITLES = {
    "": "`y[:] = x + 1; y.sum()`, 30 int64",
    "loop ": "the same as one loop over the items",
    "only ": "one item written and read",
}


def run(quick: bool) -> Section:
    """Measure everything repeatedly in one process, in several processes."""
    section = Section(
        "scratch_numba",
        "Scratch buffers inside Numba",
        f"`y = scratch; y[:] = x + 1; y.sum()` on 30 int64 at most {SLICE} times the same with a slice of a kept "
        f"array; the allocation at least {TIMES} times faster than `np.empty` there; a loop at the edge of a chunk at "
        f"most {EDGE} times that in its middle.",
    )
    if importlib.util.find_spec("numba") is None:
        section.verdicts.append(Verdict("all", "Numba is not installed", "not measured"))
        return section
    call = Call("benchmarks.experiments.scratch_numba", "measure", {"loops": 20_000 if quick else 200_000})
    samples = collect([NUMPY], call, Plan(2, 2) if quick else Plan(4, 5))
    section.raw["time"] = samples.replies
    column = {key: samples.column(NUMPY, key) for key in samples.replies[NUMPY.name][0][0]}
    table = Table("**Time of an iteration, mark and rewind included**", ["iteration", "slice", "scratch", "np.empty"])
    for prefix, title in TITLES.items():
        names = [f"{prefix}{name}" for name in ("slice", "scratch", "np.empty")]
        table.rows.append([title, *(f"{median(column[name]).value * 1e9:.1f} ns" for name in names)])
    section.tables.append(table)
    again = median(column["slice again"] / column["slice"])
    section.notes.append(f"A/A: the slice again / the slice {again}.")

    bar = f"at most {SLICE} times a slice"
    ratios = {title: column[f"{prefix}scratch"] / column[f"{prefix}slice"] for prefix, title in TITLES.items()}
    ratios.pop(TITLES["only "])
    section.verdicts.append(judge(bar, SLICE, ratios))
    faster = column["only scratch"] / column["only np.empty"]
    section.verdicts.append(judge(f"allocation: at most 1/{TIMES} of np.empty's time", 1 / TIMES, {"30 int64": faster}))
    section.verdicts.append(
        judge(f"edge at most {EDGE} times the middle", EDGE, {"4 KiB": column["edge"] / column["middle"]})
    )

    table = Table("**An array of 30 int64 that leaves its mark, into a list**", ["way", "time"])
    ways = {"keep": "kept where it is", "copy": "copied out", "none": "`np.empty` directly"}
    for key, way in ways.items():
        table.rows.append([way, f"{median(column[key]).value * 1e9:.1f} ns"])
    section.tables.append(table)
    return section
