"""`y = x + 1; y.sum()` with `y` on the heap, in scratch memory, and in a kept array: in NumPy, in Numba, in Rust."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from statistics import median as middle

import numpy as np
import numpy.typing as npt

import firsttouch as ft
from firsttouch import _firsttouch

WAYS = ("heap", "default buffer", "explicit buffer", "fixed buffer", "kept array")
Integers = npt.NDArray[np.int64]
Turns = Callable[[int], int]  # runs that many iterations, and returns the sum of one
_shuffle = random.Random(0)


def plain(x: Integers) -> int:
    """Compute it as people write it."""
    y = x + 1
    return int(y.sum())


def in_numpy(items: int) -> dict[str, Turns]:
    """Return a plain function, and decorated ones; the loop is in Python."""
    x, kept = np.arange(items), np.empty(items, np.int64)

    def into_kept(x: Integers) -> int:
        np.add(x, 1, out=kept)
        return int(kept.sum())

    functions: tuple[Callable[[Integers], int], ...] = (
        plain,
        ft.scratch(plain),
        ft.scratch(ft.ScratchBuffer())(plain),
        ft.scratch(ft.FixedBuffer(4 * x.nbytes + 4096))(plain),
        into_kept,
    )

    def turns(function: Callable[[Integers], int]) -> Turns:
        def run(count: int) -> int:
            total = 0
            for _ in range(count):
                total = function(x)
            return total

        return run

    return {way: turns(function) for way, function in zip(WAYS, functions, strict=True)}


def in_numba(items: int) -> dict[str, Turns]:
    """Return loops in compiled code; the default buffer is the thread's in a `ThreadBuffers`."""
    from firsttouch.tools.bench.tasks import scratch_numba

    return scratch_numba.ways(items)


def in_rust(items: int) -> dict[str, Turns]:
    """Return the native module's own loops over the arena; the default buffer is thread-local."""
    return {way: lambda count, way=way: _firsttouch.scratch_turns(way, items, count)[1] for way in WAYS}  # type: ignore[misc]


LANGUAGES: dict[str, Callable[[int], dict[str, Turns]]] = {"NumPy": in_numpy, "Numba": in_numba, "Rust": in_rust}


def seconds(turns: Turns, count: int) -> float:
    """Return the seconds of one iteration."""
    start = time.perf_counter()
    turns(count)
    return (time.perf_counter() - start) / count


def measure(language: str, sizes: Sequence[int], runs: int, usual: float) -> dict[str, float]:
    """Return median seconds of an iteration for each number of items and way, from short runs in shuffled order.

    *heap again* repeats the heap, to show the difference between two equal ways.
    """
    reply: dict[str, float] = {}
    for items in sizes:
        ways = LANGUAGES[language](items)
        every = {**ways, "heap again": ways["heap"]}
        once = max(min(seconds(turns, 3) for turns in every.values()), 1e-8)
        count = max(3, min(100_000, int(usual / once)))
        times: dict[str, list[float]] = {way: [] for way in every}
        for _ in range(runs):
            for way in _shuffle.sample(list(every), len(every)):
                times[way].append(seconds(every[way], count))
        reply |= {f"{items} {way}": middle(row) for way, row in times.items()}
    return reply
