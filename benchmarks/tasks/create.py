"""Creating arrays: NumPy's functions, the package's, and an allocator's, alternating in one process."""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from statistics import median as middle
from typing import Any

import numpy as np

import firsttouch as ft

TURNS = 20
_pool = ft.pool()

STATEMENTS: dict[str, tuple[str, ...]] = {
    what: (f"np.{what}(n, t)", f"ft.{what}(n, t)", f"ft.{what}(n, t, allocator=pool)", f"pool.{what}(n, t)")
    for what in ("empty", "zeros")
}


def measure(nbytes: int, what: str) -> dict[str, float]:
    """Return the seconds to create and free an array of this size, each way."""
    names = {"np": np, "ft": ft, "pool": _pool, "n": nbytes, "t": np.uint8}
    timers = {statement: timeit.Timer(statement, globals=names) for statement in STATEMENTS[what]}
    loops = max(2, min(2000, (1 << 24) // nbytes))
    times: dict[str, list[float]] = {}
    for turn in range(TURNS):
        for statement, timer in timers.items() if turn % 2 else reversed(timers.items()):
            timer.timeit(1)
            times.setdefault(statement, []).append(timer.timeit(loops) / loops)
    return {statement: middle(row) for statement, row in times.items()}


SOURCES: dict[str, Callable[[], Any]] = {
    "pool()": ft.pool,
    "pages()": ft.pages,
    'pages(huge="thp")': lambda: ft.pages(huge="thp"),
    "aligned(64)": lambda: ft.aligned(64),
    "calloc()": ft.calloc,
}
SHAPES: dict[str, tuple[int, ...]] = {"64 x 64 x 256": (64, 64, 256), "1024 x 1024 x 256": (1024, 1024, 256)}


def lazily(shape: str) -> dict[str, float]:
    """Return the seconds for zeros of float64 from each source, and from NumPy."""
    times: dict[str, float] = {}
    for name, source in {"NumPy": None, **SOURCES}.items():
        make = np.zeros if source is None else source().zeros
        make(SHAPES[shape])
        each: list[float] = []
        for _ in range(TURNS):
            start = time.perf_counter()
            array = make(SHAPES[shape])
            each.append(time.perf_counter() - start)
            del array
        times[name] = middle(each)
    return times
