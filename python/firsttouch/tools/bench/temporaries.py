"""Expressions with temporaries over sizes and allocators.

NumPy's developers have long worked on this. "Large allocations on glibc systems need to be faulted into the process
before each use", wrote Julian Taylor in 2017 (numpy pull request 8783), and proposed to keep freed blocks; it was
closed in 2020 for lack of figures in common cases. What was merged: temporaries are reused in place if that can be
detected (7997, NumPy 1.13), and large arrays request huge pages (11957), which its author measured at 3.74 ms instead
of 5.55 for copying float64 (`bench_io.Copy.time_memcpy_large_out_of_place`), 0.67 of the time.

Here each expression is compared with the same operations into existing arrays (`out=`), in a process of its own,
because glibc's behaviour depends on what a process freed before. 1 means that allocation costs nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median as median_of
from typing import Any

import numpy as np

from firsttouch._internal import units
from firsttouch.tools import preload
from firsttouch.tools.bench.common import KIB, MIB, Replies, Section, Settings, faults, name
from firsttouch.tools.measuring.contenders import DEFAULT, POOL, TUNED_GLIBC
from firsttouch.tools.measuring.processes import ask
from firsttouch.tools.measuring.statistics import Estimate, estimate

Array = np.ndarray[Any, np.dtype[Any]]
ARRAYS = 8  # operands, results and temporaries
SIZES, QUICK = (64 * KIB, 256 * KIB, MIB, 8 * MIB, 64 * MIB), (256 * KIB, 8 * MIB)
WINDOWS, SECONDS = (0, 1, 1, 0, 0, 1), 0.003  # plain (0) and into warm memory (1), alternating


def into(a: Array, b: Array, t: Array, u: Array) -> Any:
    """Compute the second expression into two arrays, as it has two temporaries at once."""
    above = np.add(np.multiply(a, b, out=t), a, out=t)
    below = np.add(b, 1.0, out=u)
    return np.subtract(np.divide(above, below, out=t), a, out=t)


#: Expressions as people write them, and with `out=`: the same operations in order, into two kept arrays.
EXPRESSIONS: dict[str, tuple[Callable[[Array, Array], Any], Callable[[Array, Array, Array, Array], Any]]] = {
    "a + b": (lambda a, b: a + b, lambda a, b, t, _: np.add(a, b, out=t)),
    "(a*b + a)/(b + 1.0) - a": (lambda a, b: (a * b + a) / (b + 1.0) - a, into),
    "((a - b)**2).sum()": (
        lambda a, b: ((a - b) ** 2).sum(),
        lambda a, b, t, _: np.square(np.subtract(a, b, out=t), out=t).sum(),
    ),
}


def measure(expression: str, nbytes: int) -> dict[str, float]:
    """Run windows of both ways alternately."""
    a, b, t, u = (np.full(nbytes // 8, value) for value in (1.5, 2.5, 0.0, 0.0))
    plainly, warmly = EXPRESSIONS[expression]
    ways: tuple[Callable[[], Any], ...] = (partial(plainly, a, b), partial(warmly, a, b, t, u))
    if np.any(ways[0]() != ways[1]()):  # these evaluations are not counted
        raise RuntimeError(f"{expression}: the results differ between the ways")
    seconds: tuple[list[float], list[float]] = ([], [])
    turns, faulted = [0, 0], [0, 0]
    for way in WINDOWS:
        before, count, start = faults(), 0, time.perf_counter()
        while not count or time.perf_counter() - start < SECONDS:
            ways[way]()
            count += 1
        seconds[way].append((time.perf_counter() - start) / count)
        turns[way] += count
        faulted[way] += faults() - before
    plain, warm = map(median_of, seconds)
    return {"ratio": plain / warm, "out=": warm, "faults": faulted[0] / turns[0]}


def mean(cells: list[Replies]) -> Estimate:
    """Return the geometric mean of cells, round by round, with its interval."""
    return estimate(np.exp(np.mean(np.log([[reply["ratio"] for reply in cell] for cell in cells]), axis=0)).tolist())


def run(settings: Settings) -> Section:
    """Measure every expression under every allocator at every size."""
    section = Section("Expressions with temporaries, compared with out= on warm memory")
    everyone = [DEFAULT, POOL, *([TUNED_GLIBC] if preload.GLIBC else [])]
    sizes, names = settings.chosen(SIZES, QUICK, ARRAYS), [who.name for who in everyone]
    cells = {
        (each, name(size), who.name): partial(ask, who, measure, ARRAYS * size, expression=each, nbytes=size)
        for each in EXPRESSIONS
        for size in sizes
        for who in everyone
    }
    found = section.measure(settings, 1 if settings.quick else 5, cells)
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for (expression, size, who), replies in found.items():
        of = replies.medians()
        row = rows.setdefault((expression, size), {"out=": of["out="]})
        row[who] = f"{of['ratio']:.2f} ({of['faults']:,.0f})"
    formats: dict[str, Callable[[Any], str]] = {"out=": units.seconds, **dict.fromkeys(names, str)}
    section.table("Time / time with out= (page faults)", ["expression", "arrays"], rows, formats)
    means = {who: mean([each for key, each in found.items() if key[2] == who]) for who in names}
    said = "; ".join(f"{who} {mean}" for who, mean in means.items())
    section.notes.append(f"Geometric means over all expressions and sizes: {said}.")
    return section
