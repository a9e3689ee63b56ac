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
from collections.abc import Callable
from functools import partial
from statistics import median as median_of
from typing import Any

import numpy as np

import firsttouch as ft
from firsttouch._internal import units
from firsttouch.tools.bench.common import KIB, MIB, Section, Settings, name, timed
from firsttouch.tools.measuring.contenders import DEFAULT
from firsttouch.tools.measuring.processes import ask

ARRAYS, SIZES, QUICK = 16, (240, 4 * KIB, 64 * KIB, MIB), (240, 64 * KIB)  # 30 integers, as in the README
WAYS = ("heap", "default buffer", "explicit buffer", "kept array")
Turns = Callable[[int], object]  # runs that many iterations


def in_numpy(items: int) -> dict[str, Turns]:
    """Return a plain function, and decorated ones; the loop is in Python."""
    x, kept = np.arange(items), np.empty(items, np.int64)

    def plain() -> Any:
        y = x + 1
        return y.sum()

    def into_kept() -> Any:
        np.add(x, 1, out=kept)
        return kept.sum()

    def turns(function: Callable[[], Any], count: int) -> None:
        for _ in range(count):
            function()

    functions = plain, ft.scratch(plain), ft.scratch(ft.ScratchBuffer())(plain), into_kept
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
    def passed_in(buffer: Any, x: Any) -> Any:
        mark = buffer.mark()
        total = filled(buffer.empty(x.size, np.int64), x)
        buffer.rewind(mark)
        return total

    def loop(step: Callable[[Any, Any], Any], source: Any) -> Turns:
        compiled, x = numba.njit(step), np.arange(items)

        @numba.njit  # type: ignore[untyped-decorator]
        def repeated(source: Any, x: Any, turns: int) -> Any:
            total = 0
            for _ in range(turns):
                total += compiled(source, x)
            return total

        return partial(repeated, source, x)

    return {
        "heap": loop(lambda _, x: filled(np.empty(x.size, np.int64), x), None),
        "default buffer": loop(lambda buffers, x: passed_in(buffers.local(), x), ThreadBuffers()),
        "explicit buffer": loop(lambda buffer, x: passed_in(buffer, x), ft.ScratchBuffer()),
        "kept array": loop(lambda kept, x: filled(kept, x), np.empty(items, np.int64)),
    }


LANGUAGES: dict[str, Callable[[int], dict[str, Turns]]] = {"NumPy": in_numpy, "Numba": in_numba}


def measure(language: str, items: int, runs: int) -> dict[str, float]:
    """Return median seconds of an iteration of each way, from short runs in shuffled order."""
    ways, shuffle = LANGUAGES[language](items), random.Random(0)
    for turns in ways.values():
        turns(3)  # compiled here
    count = max(3, min(100_000, int(0.01 / timed(partial(ways["heap"], 3))[0])))
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(runs):
        for way in shuffle.sample(list(ways), len(ways)):
            times[way].append(timed(partial(ways[way], count))[0] / count)
    return {way: median_of(row) for way, row in times.items()}


def run(settings: Settings) -> Section:
    """Measure every way in every language."""
    section = Section("A temporary array on the heap and in scratch memory: y = x + 1; y.sum() on int64")
    sizes, runs = settings.chosen(SIZES, QUICK, ARRAYS), 5 if settings.quick else 15
    languages = [each for each in LANGUAGES if each != "Numba" or importlib.util.find_spec("numba")]
    cells = {
        (each, name(size)): partial(ask, DEFAULT, measure, ARRAYS * size, language=each, items=size // 8, runs=runs)
        for each in languages
        for size in sizes
    }
    found = section.measure(settings, 2 if settings.quick else 5, cells)
    others, rows = WAYS[1:], dict[tuple[str, str], dict[str, float]]()
    for (language, size), replies in found.items():
        ratios = {way: replies.ratio(way, "heap") for way in others}
        rows[language, size] = {"heap": replies.medians()["heap"]} | {way: each.value for way, each in ratios.items()}
        section.notes.append(f"{language}, {size}: {ratios[WAYS[2]]} of the heap's time with a passed-in buffer.")
    formats = {"heap": units.seconds, **dict.fromkeys(others, "{:.2f}".format)}
    section.table("Time divided by the heap's", ["", "temporary"], rows, formats)
    if "Numba" not in languages:
        section.notes.append("Numba is not installed: pip install numba installs it.")
    return section
