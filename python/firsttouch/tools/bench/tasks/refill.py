"""One array filled twice, after it was left alone, read or written."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import firsttouch as ft
from firsttouch.tools.bench.tasks.faults import faults

#: The states before the first fill.
BEFORE: dict[str, Callable[[Any], object]] = {
    "never touched": id,
    "read first": lambda array: array.sum(),
    "written first": lambda array: array.fill(0.0),
}


def fill(array: Any, value: float) -> tuple[float, int]:
    """Return the seconds and page faults of one fill."""
    before, start = faults(), time.perf_counter()
    array.fill(value)
    took = time.perf_counter() - start
    return took, faults() - before


def turn(nbytes: int, before: str, allocator: str) -> tuple[float, ...]:
    """Return the figures of `NAMES` for one fresh array."""
    array = ft.zeros(nbytes // 8, allocator=allocator)
    BEFORE[before](array)
    found = ft.inspect(array)
    return (
        *fill(array, 1.0),
        *fill(array, 2.0),
        found.zero_page or 0,
        found.absent or 0,
        found.pages * found.page_size,
    )


NAMES = ("first", "first faults", "second", "second faults", "zero", "absent", "bytes")


def measure(nbytes: int, allocator: str, turns: int) -> dict[str, dict[str, float]]:
    """Return medians for each initial state, alternating them; `zero` and `absent` are bytes before the first fill."""
    rows: dict[str, list[tuple[float, ...]]] = {before: [] for before in BEFORE}
    shuffle = random.Random(nbytes)
    for _ in range(turns):
        for before in shuffle.sample(list(BEFORE), len(BEFORE)):
            rows[before].append(turn(nbytes, before, allocator))
    return {before: dict(zip(NAMES, np.median(row, axis=0).tolist(), strict=True)) for before, row in rows.items()}
