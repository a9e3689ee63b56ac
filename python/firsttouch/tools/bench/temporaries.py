"""Expressions with temporaries over sizes, threads and allocators.

NumPy's developers have long worked on this. "Large allocations on glibc systems need to be faulted into the process
before each use", wrote Julian Taylor in 2017 (numpy pull request 8783), and proposed to keep freed blocks; it was
closed in 2020 for lack of figures in common cases. What was merged: temporaries are reused in place if that can be
detected (7997, NumPy 1.13), and large arrays request huge pages (11957), which its author measured at 3.74 ms instead
of 5.55 for copying float64 (`bench_io.Copy.time_memcpy_large_out_of_place`), 0.67 of the time.

Here each expression is compared with the same operations into existing arrays (`out=`), in a process of its own,
because glibc's behaviour depends on what a process freed before. 1 means that allocation costs nothing.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from statistics import median as median_of
from threading import Barrier, Thread
from typing import TYPE_CHECKING, Any

import numpy as np

from firsttouch.tools.bench.common import Cell, Settings, by_size, faults, measured, middle
from firsttouch.tools.measuring.contenders import FIRSTTOUCH, NUMPY, TUNED_GLIBC, Contender
from firsttouch.tools.measuring.report import Picture, Section, Table
from firsttouch.tools.measuring.rounds import Call, forked
from firsttouch.tools.measuring.sizes import KIB, MIB, NoRoomError, fitting, name
from firsttouch.tools.measuring.statistics import Matrix, geometric_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = np.ndarray[Any, np.dtype[Any]]
ARRAYS = 8  # per thread: operands, results and temporaries
SIZES, QUICK = (64 * KIB, 256 * KIB, MIB, 8 * MIB, 64 * MIB, 256 * MIB), (256 * KIB, 8 * MIB)
TOGETHER = 64 * MIB  # the largest size with several threads
WINDOWS, SECONDS = (0, 1, 1, 0, 0, 1), 0.003  # plain (0) and into warm memory (1), alternating
ROW = 256  # items per row, if rows are broadcast
#: By contender and size.
Found = dict[tuple[str, int], list[dict[str, Any]]]


@dataclass(frozen=True)
class Expression:
    """An expression as people write it, and with `out=`: the same operations in order, into two kept arrays."""

    plain: Callable[[Array, Array], Any]
    warm: Callable[[Array, Array, Array, Array], Any]
    rows: bool = False


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
    return np.square(t, out=t).sum()


def standardized(a: Array, b: Array, t: Array, _u: Array) -> Array:
    """Combine a matrix with two rows."""
    np.subtract(a, b[0], out=t)
    np.divide(t, b[1], out=t)
    return t


EXPRESSIONS = {
    "a + b": Expression(lambda a, b: a + b, lambda a, b, t, _: np.add(a, b, out=t)),
    "(a*b + a)/(b + 1.0) - a": Expression(lambda a, b: (a * b + a) / (b + 1.0) - a, long),
    "((a - b)**2).sum()": Expression(lambda a, b: ((a - b) ** 2).sum(), distance),
    "(A - row)/other row": Expression(lambda a, b: (a - b[0]) / b[1], standardized, rows=True),
}


def operands(nbytes: int, expression: Expression) -> list[Array]:
    """Return a, b, and two results that are already resident."""
    arrays = [np.full(nbytes // 8, value) for value in (1.5, 2.5, 0.0, 0.0)]
    return [array.reshape(-1, ROW) for array in arrays] if expression.rows else arrays


def evaluate(expression: Expression, nbytes: int, together: Barrier, found: list[dict[str, float]]) -> None:
    """Run windows of both ways alternately, in one thread; all threads begin each window together."""
    a, b, t, u = operands(nbytes, expression)
    ways = (partial(expression.plain, a, b), partial(expression.warm, a, b, t, u))
    results = [float(np.sum(way())) for way in ways]  # these evaluations are not counted
    seconds: tuple[list[float], list[float]] = ([], [])
    turns, faulted = [0, 0], [0, 0]
    for way in WINDOWS:
        together.wait()
        before, count, start = faults(), 0, time.perf_counter()
        while not count or time.perf_counter() - start < SECONDS:
            ways[way]()
            count += 1
        seconds[way].append((time.perf_counter() - start) / count)
        turns[way] += count
        faulted[way] += faults() - before
    plain, warm = map(median_of, seconds)
    same = results[0] == results[1]
    found.append(
        {"plain": plain, "warm": warm, "faults": faulted[0] / turns[0], "result": results[0] if same else np.nan}
    )


def together(expression: str, nbytes: int, threads: int) -> dict[str, float]:
    """Evaluate in so many threads at once; return the means."""
    found: list[dict[str, float]] = []
    barrier = Barrier(threads)
    workers = [
        Thread(target=evaluate, args=(EXPRESSIONS[expression], nbytes, barrier, found)) for _ in range(threads - 1)
    ]
    for worker in workers:
        worker.start()
    evaluate(EXPRESSIONS[expression], nbytes, barrier, found)
    for worker in workers:
        worker.join()
    means = {figure: fmean(each[figure] for each in found) for figure in ("plain", "warm", "faults", "result")}
    return means | {"ratio": means["plain"] / means["warm"]}


def measure(nbytes: int, threads: int) -> dict[str, dict[str, float]]:
    """Measure every expression in a fork of its own, because glibc adapts its thresholds to earlier frees."""
    return {expression: forked(partial(together, expression, nbytes, threads)) for expression in EXPRESSIONS}


def run(settings: Settings) -> Section:
    """Measure every expression under every allocator at every size, in one thread and in all."""
    cores = len(os.sched_getaffinity(0))
    section = Section(
        "temporaries",
        "Expressions with temporaries",
        "what does an expression cost, compared with the same operations with `out=` on warm memory? Cells are the "
        "time of the plain expression divided by that with `out=`, both in one process: 1 means that allocation costs "
        "nothing. *Page faults* are those of one evaluation. *firsttouch* is its installed pool.",
    )
    everyone = [NUMPY, FIRSTTOUCH, TUNED_GLIBC]
    everyone += [Contender(expression, install=expression) for expression in settings.allocators]
    threads_of = sorted({1, cores})
    for step, threads in enumerate(threads_of):
        title = "In the main thread" if threads == 1 else f"In {threads} threads at once"
        try:
            sizes, notes = _sizes(settings, threads)
        except NoRoomError as error:
            if threads == 1:
                raise
            section.notes.append(f"{title}: {error}.")
            continue
        cells = {
            (contender.name, size): Cell(
                Call(__name__, "measure", {"nbytes": size, "threads": threads}), ARRAYS * threads * size, contender
            )
            for contender in everyone
            for size in sizes
        }
        progress = partial(lambda step, done: settings.progress((step + done) / len(threads_of)), step)
        found = measured(cells, 2 if settings.quick else 5, progress)
        section.raw[title] = {str(key): replies for key, replies in found.items()}
        section.notes += [f"{title}: {note}" for note in notes]
        report(section, title, [contender.name for contender in everyone], sizes, found)
    return section


def _sizes(settings: Settings, threads: int) -> tuple[list[int], list[str]]:
    """Return the sizes for this number of threads, in whole pages, and notes about those left out."""
    full = [size for size in SIZES if threads == 1 or size <= TOGETHER]
    sizes, notes = settings.chosen(full, QUICK, ARRAYS)
    sizes, more = fitting(sorted({-(-size // 4096) * 4096 for size in sizes}), ARRAYS * threads)
    return sizes, [*notes, *more]


def report(section: Section, title: str, names: list[str], sizes: list[int], found: Found) -> None:
    """Add a table, a picture and a sentence for one number of threads."""
    columns = ["expression", "arrays", "out=", *names, *(f"{who}: page faults" for who in names)]
    table = Table(f"**{title}**", columns)
    cells: dict[str, dict[int, list[Matrix]]] = {who: {size: [] for size in sizes} for who in names}
    for expression in EXPRESSIONS:
        for size in sizes:
            replies = {who: [reply[expression] for reply in found[who, size]] for who in names}
            if len({reply["result"] for each in replies.values() for reply in each}) > 1:
                raise RuntimeError(f"{expression}: the results differ between the ways or the allocators")
            for who in names:
                ratios = np.array([[reply["ratio"]] for reply in replies[who]], float)
                cells[who][size].append(ratios)
            warm = f"{middle(replies[names[0]], 'warm') * 1e6:,.1f} us"
            counts = (f"{middle(replies[who], 'faults'):,.0f}" for who in names)
            table.rows.append(
                [expression, name(size), warm, *(f"{np.median(cells[who][size][-1]):.2f}" for who in names), *counts]
            )
    means = {who: geometric_mean([cell for row in cells[who].values() for cell in row]) for who in names}
    table.rows.append(["geometric mean", "", "", *map(str, means.values()), *[""] * len(names)])
    section.tables.append(table)
    lines = {who: [geometric_mean(row).value for row in cells[who].values()] for who in names}
    words = f"{title}: an expression / the same with out= (geometric mean of {len(EXPRESSIONS)} expressions)"
    key = "one" if "main" in title else "all"
    section.pictures.append(Picture(key, words, partial(draw, lines=lines, sizes=sizes)))
    said = "; ".join(f"{who} {mean}" for who, mean in means.items())
    section.notes.append(f"**{title}, over all expressions and sizes**: {said}.")


def draw(axes: Axes, lines: Mapping[str, list[float]], sizes: list[int]) -> None:
    """Plot a line over the sizes for each contender."""
    for who, values in lines.items():
        axes.plot(sizes, values, marker="o", label=who)
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set(xlabel="bytes of each array", ylabel="time / time with out=   (1: allocation is free)")
    by_size(axes, sizes)
