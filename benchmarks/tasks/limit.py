"""One size, alternately served by the pool and forwarded to NumPy, in one process."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable
from statistics import median as middle
from typing import Any

import numpy as np


def hook() -> Callable[[int], None] | None:
    """Return the function that sets the limit below which requests are forwarded; None if this build has none."""
    native = importlib.import_module("firsttouch._firsttouch")
    return getattr(native, "set_small_limit", None)


def measure(nbytes: int) -> dict[str, float]:
    """Return seconds per iteration of `np.empty` and of an expression, alternately pooled and forwarded."""
    import firsttouch

    move = hook()
    if move is None:
        return {}
    before = firsttouch.stats().small_limit
    times: dict[str, list[float]] = {}
    try:
        for turn in range(40):
            for kind in ("pooled", "forwarded") if turn % 2 else ("forwarded", "pooled"):
                move(0 if kind == "pooled" else nbytes + 1)
                empty, expression = once(nbytes // 8, kind)
                times.setdefault(f"empty {kind}", []).append(empty)
                times.setdefault(f"expression {kind}", []).append(expression)
    finally:
        move(before)
    return {name: middle(row) for name, row in times.items()}


_operands: dict[tuple[str, int], Any] = {}


def once(count: int, kind: str) -> tuple[float, float]:
    """Time short loops with operands of the same kind."""
    if (kind, count) not in _operands:
        _operands[kind, count] = (np.full(count, 1.5), np.full(count, 2.5))
    a, b = _operands[kind, count]
    make, clock = np.empty, time.perf_counter
    loops = range(max(4, (1 << 16) // count))
    start = clock()
    for _ in loops:
        make(count)
    between = clock()
    for _ in loops:
        result = (a * b + a) / (b + 1.0) - a
        del result
    return (between - start) / len(loops), (clock() - between) / len(loops)
