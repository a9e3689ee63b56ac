"""Making arrays: NumPy's functions, the package's, and an allocator's, in alternation in one process."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from statistics import median as middle
from typing import Any

import numpy as np

import firsttouch as ft

TURNS = 20
_pool = ft.pool()

MAKERS: dict[str, dict[str, Callable[..., Any]]] = {
    "empty": {
        "np.empty": np.empty,
        "ft.empty": ft.empty,
        "ft.empty(allocator=)": partial(ft.empty, allocator=_pool),
        "pool.empty": _pool.empty,
    },
    "zeros": {
        "np.zeros": np.zeros,
        "ft.zeros": ft.zeros,
        "ft.zeros(allocator=)": partial(ft.zeros, allocator=_pool),
        "pool.zeros": _pool.zeros,
    },
}


def measure(nbytes: int, what: str) -> dict[str, float]:
    """Seconds to make and drop an array of that many bytes, each way."""
    loops = range(max(2, min(2000, (1 << 24) // nbytes)))
    times: dict[str, list[float]] = {}
    clock, dtype = time.perf_counter, np.uint8
    names = list(MAKERS[what])
    for turn in range(TURNS):
        for name in names if turn % 2 else reversed(names):
            make = MAKERS[what][name]
            make(nbytes, dtype)
            start = clock()
            for _ in loops:
                make(nbytes, dtype)
            times.setdefault(name, []).append((clock() - start) / len(loops))
    return {name: middle(row) for name, row in times.items()}


SOURCES: dict[str, Callable[[], Any]] = {
    "pool()": ft.pool,
    "pages()": ft.pages,
    'pages(huge="thp")': lambda: ft.pages(huge="thp"),
    "aligned(64)": lambda: ft.aligned(64),
    "calloc()": ft.calloc,
}
SHAPES: dict[str, tuple[int, ...]] = {"64 x 64 x 256": (64, 64, 256), "1024 x 1024 x 256": (1024, 1024, 256)}


def lazily(shape: str) -> dict[str, float]:
    """Seconds for zeros of float64 from each source, and from NumPy."""
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
