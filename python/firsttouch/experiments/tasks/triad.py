"""`a = b + c * d`, block by block, with what stands behind the arrays before and after."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import firsttouch as ft
from firsttouch.experiments.tasks.faults import faults

Array = np.ndarray[Any, np.dtype[np.float64]]
#: Items of a block: its product stays in the processor's own cache, and Python's part is a few per cent.
BLOCK = 16384


def triad(a: Array, b: Array, c: Array, d: Array, product: Array) -> None:
    """Read b, c and d once, write a once, as the loop in C would; two operations an item."""
    for start in range(0, a.size, BLOCK):
        part = slice(start, start + BLOCK)
        here = product[: a[part].size]
        np.multiply(c[part], d[part], out=here)
        np.add(b[part], here, out=a[part])


STATES = ("absent", "zero_page", "real", "huge")


def residency(arrays: list[Array]) -> dict[str, float]:
    """Bytes behind b, c and d, the arrays that are only read: not there, zero page, small and huge pages."""
    found = [ft.inspect(array) for array in arrays[1:]]
    return {
        state: float(sum(getattr(one, state) or 0 for one in found))
        for state in ("absent", "zero_page", "real", "huge")
    }


def measure(nbytes: int, allocator: str, written: bool, seconds: float) -> dict[str, Any]:
    """Seconds of the first run and of the best after it, and the residency before and after.

    `bits` counts items that are not +0.0. `faults` are those of all runs: with the bytes that they mapped they say how
    large the pages are, the zero page included.
    """
    arrays = [ft.zeros(nbytes // 8, allocator=allocator) for _ in range(4)]
    product = np.zeros(BLOCK)
    product.fill(0.0)
    if written:
        for array in arrays:
            array.fill(0.0)
    before = residency(arrays)
    times: list[float] = []
    faulted, end = faults(), time.perf_counter() + seconds
    while len(times) < 4 or time.perf_counter() < end:
        start = time.perf_counter()
        triad(arrays[0], arrays[1], arrays[2], arrays[3], product)
        times.append(time.perf_counter() - start)
    faulted, after = faults() - faulted, residency(arrays)
    differing = sum(int(np.count_nonzero(array.view(np.uint64))) for array in arrays)
    return {
        "first": times[0],
        "best": min(times[1:]),
        "before": before,
        "after": after,
        "bits": differing,
        "faults": faulted,
    }
