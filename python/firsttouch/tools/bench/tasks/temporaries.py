"""Expressions with temporaries, and the same into memory that is already warm, in any number of threads."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from statistics import fmean
from statistics import median as middle
from threading import Barrier
from typing import Any

import numpy as np

from firsttouch.tools.bench.tasks.faults import thread_faults
from firsttouch.tools.measuring.forked import forked

Array = np.ndarray[Any, np.dtype[Any]]
ROW = 256  # items per row, if rows are broadcast


@dataclass(frozen=True)
class Expression:
    """An expression as people write it, and with `out=`: the same operations in order, into two kept arrays."""

    dtype: str
    plain: Callable[[Array, Array], Any]
    warm: Callable[[Array, Array, Array, Array], Any]
    rows: bool = False


def add(a: Array, b: Array, t: Array, _u: Array) -> Array:
    """One operation."""
    np.add(a, b, out=t)
    return t


def long(a: Array, b: Array, t: Array, u: Array) -> Array:
    """Compute five operations, with two live temporaries at once."""
    np.multiply(a, b, out=t)
    np.add(t, a, out=t)
    np.add(b, 1.0, out=u)
    np.divide(t, u, out=t)
    np.subtract(t, a, out=t)
    return t


def distance(a: Array, b: Array, t: Array, _u: Array) -> Any:
    """Compute two operations and a reduction."""
    np.subtract(a, b, out=t)
    np.square(t, out=t)
    return t.sum()


def standardized(a: Array, b: Array, t: Array, _u: Array) -> Array:
    """Combine a matrix with two rows."""
    np.subtract(a, b[0], out=t)
    np.divide(t, b[1], out=t)
    return t


EXPRESSIONS = {
    "a + b": Expression("f8", lambda a, b: a + b, add),
    "(a*b + a)/(b + 1.0) - a": Expression("f8", lambda a, b: (a * b + a) / (b + 1.0) - a, long),
    "the same in float32": Expression("f4", lambda a, b: (a * b + a) / (b + 1.0) - a, long),
    "((a - b)**2).sum()": Expression("f8", lambda a, b: ((a - b) ** 2).sum(), distance),
    "(A - row)/other row": Expression("f8", lambda a, b: (a - b[0]) / b[1], standardized, rows=True),
}


def operands(nbytes: int, expression: Expression) -> list[Array]:
    """Return a, b, and two results that are already resident."""
    count = nbytes // np.dtype(expression.dtype).itemsize
    arrays = [np.full(count, value, expression.dtype) for value in (1.5, 2.5, 0.0, 0.0)]
    return [array.reshape(-1, ROW) for array in arrays] if expression.rows else arrays


@dataclass
class Spent:
    """The time spent by one way of evaluation, in one thread."""

    seconds: list[float] = field(default_factory=list[float])
    """Seconds per evaluation, in each window."""
    turns: int = 0
    faults: int = 0
    result: float = 0.0

    def run(self, evaluate: Callable[[], Any], seconds: float) -> None:
        """Run a window: evaluate at least once, and until the time is over; each result is freed at once."""
        before, turns = thread_faults(), 0
        start = now = time.perf_counter()
        while not turns or now - start < seconds:
            evaluate()
            turns += 1
            now = time.perf_counter()
        self.seconds.append((now - start) / turns)
        self.turns += turns
        self.faults += thread_faults() - before


def one_thread(name: str, nbytes: int, windows: Sequence[int], seconds: float, together: Barrier) -> list[Spent]:
    """Run windows of both ways alternately; all threads begin each window together."""
    expression = EXPRESSIONS[name]
    a, b, t, u = operands(nbytes, expression)
    ways = (partial(expression.plain, a, b), partial(expression.warm, a, b, t, u))
    spent = [Spent(), Spent()]
    for way, note in zip(ways, spent, strict=True):
        note.result = float(np.sum(way()))  # this evaluation is not counted
    for kind in windows:
        together.wait()
        spent[kind].run(ways[kind], seconds)
    return spent


def one(name: str, nbytes: int, threads: int, windows: Sequence[int], seconds: float) -> dict[str, float]:
    """Return the seconds and page faults of an evaluation, plain and into warm memory, and the results."""
    work = partial(one_thread, name, nbytes, windows, seconds, Barrier(threads))
    if threads == 1:
        done = [work()]
    else:
        with ThreadPoolExecutor(threads) as pool:
            done = [future.result() for future in [pool.submit(work) for _ in range(threads)]]
    reply: dict[str, float] = {}
    for way, spents in zip(("plain", "warm"), zip(*done, strict=True), strict=True):
        reply[f"{name} {way}"] = fmean(middle(spent.seconds) for spent in spents)
        reply[f"{name} {way} faults"] = fmean(spent.faults / spent.turns for spent in spents)
        reply[f"{name} {way} result"] = spents[0].result
    return reply


def measure(nbytes: int, threads: int, windows: Sequence[int], seconds: float) -> dict[str, float]:
    """Measure every expression in a fork of its own, because glibc adapts its thresholds to earlier frees."""
    reply: dict[str, float] = {}
    for name in EXPRESSIONS:
        reply |= forked(partial(one, name, nbytes, threads, windows, seconds))
    return reply
