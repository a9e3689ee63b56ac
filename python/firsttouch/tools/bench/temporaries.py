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

from firsttouch.tools.bench.common import KIB, MIB, Cell, Section, Settings, faults, lines, middle, name
from firsttouch.tools.measuring.contenders import FIRSTTOUCH, HAS_GLIBC, NUMPY, TUNED_GLIBC
from firsttouch.tools.measuring.report import Table
from firsttouch.tools.measuring.statistics import Estimate, estimate

Array = np.ndarray[Any, np.dtype[Any]]
ARRAYS = 8  # operands, results and temporaries
SIZES, QUICK = (64 * KIB, 256 * KIB, MIB, 8 * MIB, 64 * MIB), (256 * KIB, 8 * MIB)
WINDOWS, SECONDS = (0, 1, 1, 0, 0, 1), 0.003  # plain (0) and into warm memory (1), alternating


def long(a: Array, b: Array, t: Array, u: Array) -> Any:
    """Compute five operations, with two live temporaries at once."""
    np.multiply(a, b, out=t)
    np.add(t, a, out=t)
    np.add(b, 1.0, out=u)
    np.divide(t, u, out=t)
    return np.subtract(t, a, out=t)


def distance(a: Array, b: Array, t: Array, _u: Array) -> Any:
    """Compute two operations and a reduction."""
    np.subtract(a, b, out=t)
    return np.square(t, out=t).sum()


#: Expressions as people write them, and with `out=`: the same operations in order, into two kept arrays.
EXPRESSIONS: dict[str, tuple[Callable[[Array, Array], Any], Callable[[Array, Array, Array, Array], Any]]] = {
    "a + b": (lambda a, b: a + b, lambda a, b, t, _: np.add(a, b, out=t)),
    "(a*b + a)/(b + 1.0) - a": (lambda a, b: (a * b + a) / (b + 1.0) - a, long),
    "((a - b)**2).sum()": (lambda a, b: ((a - b) ** 2).sum(), distance),
}


def measure(expression: str, nbytes: int) -> dict[str, float]:
    """Run windows of both ways alternately."""
    a, b, t, u = (np.full(nbytes // 8, value) for value in (1.5, 2.5, 0.0, 0.0))
    plainly, into = EXPRESSIONS[expression]
    ways: tuple[Callable[[], Any], ...] = (partial(plainly, a, b), partial(into, a, b, t, u))
    results = [float(np.sum(way())) for way in ways]  # these evaluations are not counted
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
    result = results[0] if results[0] == results[1] else np.nan
    return {"ratio": plain / warm, "warm": warm, "faults": faulted[0] / turns[0], "result": result}


def mean(cells: list[list[dict[str, float]]]) -> Estimate:
    """Return the geometric mean of cells, round by round, with its interval."""
    return estimate(np.exp(np.mean(np.log([[reply["ratio"] for reply in cell] for cell in cells]), axis=0)).tolist())


def run(settings: Settings) -> Section:
    """Measure every expression under every allocator at every size."""
    section = Section("temporaries", "Expressions with temporaries, compared with out= on warm memory")
    everyone = [NUMPY, FIRSTTOUCH, *([TUNED_GLIBC] if HAS_GLIBC else [])]
    sizes = settings.chosen(SIZES, QUICK, ARRAYS)
    cells = {
        (who.name, expression, size): Cell(measure, ARRAYS * size, who, expression=expression, nbytes=size)
        for who in everyone
        for expression in EXPRESSIONS
        for size in sizes
    }
    found = section.measure(cells, 1 if settings.quick else 5, settings)
    names = [who.name for who in everyone]
    table = Table("Time / time with out= (page faults)", ["expression", "arrays", "out=", *names])
    for expression in EXPRESSIONS:
        for size in sizes:
            replies = [found[who, expression, size] for who in names]
            if len({reply["result"] for each in replies for reply in each}) > 1:
                raise RuntimeError(f"{expression}: the results differ between the ways or the allocators")
            ratios = (f"{middle(each, 'ratio'):.2f} ({middle(each, 'faults'):,.0f})" for each in replies)
            table.rows.append([expression, name(size), f"{middle(replies[0], 'warm') * 1e6:,.1f} us", *ratios])
    section.tables.append(table)
    by_size = {who: [[found[who, each, size] for each in EXPRESSIONS] for size in sizes] for who in names}
    said = "; ".join(f"{who} {mean([cell for row in rows for cell in row])}" for who, rows in by_size.items())
    section.notes.append(f"Geometric means over all expressions and sizes: {said}.")
    series = {who: [mean(row).value for row in rows] for who, rows in by_size.items()}
    title = "An expression / the same with out= (1: allocation is free)"
    section.pictures.append(lines(title, sizes, series, "time / time with out="))
    return section
