"""A temporary array on the heap and in scratch memory: the comparison of Bumper.jl.

The README of Bumper.jl (Mason Protter) adds one to 30 integers into a temporary and sums it, in Julia. Medians: 36.6 ns
with the temporary on the heap, 20.8 ns in the task's default buffer, 14.7 ns in a buffer that is passed in; and 9.9 ns,
with 3 integers, in a fixed buffer made by the caller. Nothing there keeps an array from outliving its memory.

Here the same function is measured in NumPy and in Numba, with 30 integers and with more. Arrays that outlive their
scope stay valid. *Kept array* is the lower bound: an array allocated beforehand.
"""

from __future__ import annotations

import importlib.util
import random
import time
from collections.abc import Callable
from functools import partial
from statistics import median as median_of
from typing import Any

import numpy as np

import firsttouch as ft
from firsttouch.tools.bench.common import KIB, MIB, Cell, Section, Settings, bars, middle, name, ratio
from firsttouch.tools.measuring.report import Table

ARRAYS, SIZES, QUICK = 16, (240, 4 * KIB, 64 * KIB, MIB), (240, 64 * KIB)  # 30 integers, as in the README
WAYS = ("heap", "default buffer", "explicit buffer", "kept array")
Turns = Callable[[int], object]  # runs that many iterations


def in_numpy(items: int) -> dict[str, Turns]:
    """Return a plain function, and decorated ones; the loop is in Python."""
    x, kept = np.arange(items), np.empty(items, np.int64)

    def plain(x: Any) -> int:
        y = x + 1
        return int(y.sum())

    def into_kept(x: Any) -> int:
        np.add(x, 1, out=kept)
        return int(kept.sum())

    def turns(function: Callable[[Any], int], count: int) -> None:
        for _ in range(count):
            function(x)

    functions: tuple[Callable[[Any], int], ...] = (
        plain,
        ft.scratch(plain),
        ft.scratch(ft.ScratchBuffer())(plain),
        into_kept,
    )
    return {way: partial(turns, function) for way, function in zip(WAYS, functions, strict=True)}


def in_numba(items: int) -> dict[str, Turns]:
    """Return loops in compiled code, because calling it from Python costs more than all of this."""
    import numba

    from firsttouch.numba import ThreadBuffers

    @numba.njit  # type: ignore[untyped-decorator]
    def filled(y: Any, x: Any) -> Any:
        for i in range(x.size):
            y[i] = x[i] + 1
        return y.sum()

    @numba.njit  # type: ignore[untyped-decorator]
    def heap(_: Any, x: Any) -> Any:
        return filled(np.empty(x.size, np.int64), x)

    @numba.njit  # type: ignore[untyped-decorator]
    def passed_in(buffer: Any, x: Any) -> Any:
        mark = buffer.mark()
        total = filled(buffer.empty(x.size, np.int64), x)
        buffer.rewind(mark)
        return total

    @numba.njit  # type: ignore[untyped-decorator]
    def default(buffers: Any, x: Any) -> Any:
        return passed_in(buffers.local(), x)

    @numba.njit  # type: ignore[untyped-decorator]
    def kept(array: Any, x: Any) -> Any:
        return filled(array[: x.size], x)

    def loop(step: Any) -> Any:
        def repeated(source: Any, x: Any, turns: int) -> Any:
            total = 0
            for _ in range(turns):
                total += step(source, x)
            return total

        return numba.njit(repeated)

    x, array = np.arange(items), np.empty(items, np.int64)
    sources, steps = (array, ThreadBuffers(), ft.ScratchBuffer(), array), (heap, default, passed_in, kept)
    return {way: partial(loop(step), source, x) for way, step, source in zip(WAYS, steps, sources, strict=True)}


LANGUAGES: dict[str, Callable[[int], dict[str, Turns]]] = {"NumPy": in_numpy, "Numba": in_numba}


def seconds(turns: Turns, count: int) -> float:
    """Return the seconds of each of so many iterations."""
    start = time.perf_counter()
    turns(count)
    return (time.perf_counter() - start) / count


def measure(language: str, items: int, runs: int) -> dict[str, float]:
    """Return median seconds of an iteration of each way, from short runs in shuffled order.

    *heap again* repeats the heap, to show the difference between two equal ways.
    """
    ways, shuffle = LANGUAGES[language](items), random.Random(0)
    ways["heap again"] = ways["heap"]
    for turns in ways.values():
        turns(3)  # compiled here
    once = max(min(seconds(turns, 3) for turns in ways.values()), 1e-8)
    count = max(3, min(100_000, int(0.003 / once)))
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(runs):
        for way in shuffle.sample(list(ways), len(ways)):
            times[way].append(seconds(ways[way], count))
    return {way: median_of(row) for way, row in times.items()}


def run(settings: Settings) -> Section:
    """Measure every way in every language."""
    section = Section("scratch", "A temporary array on the heap and in scratch memory: y = x + 1; y.sum() on int64")
    sizes, runs = settings.chosen(SIZES, QUICK, ARRAYS), 5 if settings.quick else 15
    languages = [each for each in LANGUAGES if each != "Numba" or importlib.util.find_spec("numba")]
    cells = {
        (language, size): Cell(measure, ARRAYS * size, language=language, items=size // 8, runs=runs)
        for language in languages
        for size in sizes
    }
    found = section.measure(cells, 2 if settings.quick else 5, settings)
    others = [*WAYS[1:], "heap again"]
    for language in languages:
        table = Table(f"{language}: time divided by the heap's", ["temporary", "heap", *others])
        to_heap = {way: [ratio(found[language, size], way, "heap") for size in sizes] for way in others}
        for at, size in enumerate(sizes):
            heap = f"{middle(found[language, size], 'heap') * 1e9:,.1f} ns"
            table.rows.append([name(size), heap, *(f"{to_heap[way][at].value:.2f}" for way in others)])
        section.tables.append(table)
        said = ", ".join(f"{each} at {name(size)}" for each, size in zip(to_heap[WAYS[2]], sizes, strict=True))
        section.notes.append(f"{language}, time with a passed-in buffer relative to the heap: {said}.")
        series = {way: [each.value for each in to_heap[way]] for way in WAYS[1:]}
        title = f"{language}: a temporary in scratch memory relative to the heap (below 1 is faster)"
        section.pictures.append(bars(title, [name(size) for size in sizes], series, "time / the heap's"))
    if "Numba" not in languages:
        section.notes.append("Numba is not installed: pip install numba installs it.")
    return section
