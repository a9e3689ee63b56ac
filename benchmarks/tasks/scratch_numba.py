"""Temporary arrays in code compiled by Numba: from a scratch buffer, from NumPy's constructor, none at all."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

import firsttouch as ft
from firsttouch.tools.bench.tasks.scratch_numba import empty_loop, njit, repeated, scratch_loop, slice_loop

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
