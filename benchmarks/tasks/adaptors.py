"""One adaptor around a source: creating arrays directly, and an expression in the adaptor's context."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from statistics import median as middle
from typing import Any

import numpy as np

import firsttouch as ft

TURNS = 20
STACKS: dict[str, Callable[[], Any]] = {
    "pool()": ft.pool,
    "tracked(pool())": lambda: ft.tracked(ft.pool()),
    "tracked(pool(), lines=True)": lambda: ft.tracked(ft.pool(), lines=True),
    "limited(pool(), '16 GiB')": lambda: ft.limited(ft.pool(), "16 GiB"),
    "filled(pool())": lambda: ft.filled(ft.pool()),
    "guarded(pool())": lambda: ft.guarded(ft.pool()),
    "pool(malloc())": lambda: ft.pool(ft.malloc()),
    "malloc()": ft.malloc,
    "mimalloc()": ft.mimalloc,
    "jemalloc()": ft.jemalloc,
}
_made: dict[str, Any] = {}


def made(stack: str) -> Any:
    """Return the allocator, created once."""
    if stack not in _made:
        _made[stack] = STACKS[stack]()
    return _made[stack]


def alternately(measures: Mapping[str, Callable[[], Any]], loops: int) -> dict[str, float]:
    """Return median seconds of each, measured alternately."""
    times: dict[str, list[float]] = {}
    for turn in range(TURNS):
        for name in list(measures) if turn % 2 else reversed(list(measures)):
            measure = measures[name]
            start = time.perf_counter()
            for _ in range(loops):
                measure()
            times.setdefault(name, []).append((time.perf_counter() - start) / loops)
    return {name: middle(row) for name, row in times.items()}


def create(nbytes: int) -> dict[str, float]:
    """Return the seconds to create and free an array with each."""
    makers = {stack: partial(made(stack).empty, nbytes, np.uint8) for stack in STACKS}
    return alternately(makers, loops=max(2, min(500, (1 << 22) // nbytes)))


def expression(nbytes: int) -> dict[str, float]:
    """Return the seconds of an expression with three temporaries and a result, with each stack as the context's
    allocator.
    """
    a, b = np.full(nbytes // 8, 1.5), np.full(nbytes // 8, 2.5)

    def once() -> None:
        result = (a * b + a) / (b + 1.0) - a
        del result

    times: dict[str, list[float]] = {}
    loops = max(1, (1 << 20) // nbytes)
    for turn in range(TURNS):
        for stack in STACKS if turn % 2 else reversed(STACKS):
            with ft.use(made(stack)):
                once()
                start = time.perf_counter()
                for _ in range(loops):
                    once()
                times.setdefault(stack, []).append((time.perf_counter() - start) / loops)
    return {stack: middle(row) for stack, row in times.items()}
