"""`a = b + c * d`, block by block, with the residency of the arrays before and after."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

import firsttouch as ft
from firsttouch.tools.bench.tasks.faults import faults

Array = np.ndarray[Any, np.dtype[np.float64]]
#: Items per block: its product stays in the processor's own cache, and Python's overhead is a few per cent.
BLOCK = 16384


def triad(a: Array, b: Array, c: Array, d: Array, product: Array) -> None:
    """Read b, c and d once and write a once, as a loop in C would; two operations per item."""
    for start in range(0, a.size, BLOCK):
        part = slice(start, start + BLOCK)
        here = product[: a[part].size]
        np.multiply(c[part], d[part], out=here)
        np.add(b[part], here, out=a[part])


PAGES = ("absent", "zero_page", "real", "huge")
#: Whether zeros were written into the arrays first.
STATES = {"never written": False, "written": True}


def residency(arrays: list[Array]) -> dict[str, float]:
    """Return the bytes of b, c and d, which are only read: absent, zero page, small and huge pages."""
    found = [ft.inspect(array) for array in arrays[1:]]
    return {
        state: float(sum(getattr(one, state) or 0 for one in found))
        for state in ("absent", "zero_page", "real", "huge")
    }


class Arrays:
    """Four arrays in one state, and the times of their runs."""

    def __init__(self, nbytes: int, allocator: str, written: bool) -> None:
        self.arrays: list[Array] = [ft.zeros(nbytes // 8, allocator=allocator) for _ in range(4)]
        if written:
            for array in self.arrays:
                array.fill(0.0)
        self.before = residency(self.arrays)
        self.times: list[float] = []
        self.faults = 0

    def run(self, product: Array) -> None:
        """Once."""
        a, b, c, d = self.arrays
        faulted, start = faults(), time.perf_counter()
        triad(a, b, c, d, product)
        self.times.append(time.perf_counter() - start)
        self.faults += faults() - faulted

    def found(self) -> dict[str, Any]:
        """Return the seconds of the first and of the best later run, the residency, and the items that are not +0.0."""
        bits = sum(int(np.count_nonzero(array.view(np.uint64))) for array in self.arrays)
        found = {"first": self.times[0], "best": min(self.times[1:]), "bits": bits, "faults": self.faults}
        return found | {"before": self.before, "after": residency(self.arrays)}


def measure(nbytes: int, allocator: str, seconds: float) -> dict[str, Any]:
    """Return `Arrays.found` for both states, whose runs alternate so that disturbances affect both.

    `faults`, with the bytes that they mapped, show how large the pages are, including the zero page.
    """
    states = {state: Arrays(nbytes, allocator, written) for state, written in STATES.items()}
    product = np.zeros(BLOCK)
    product.fill(0.0)
    end, runs = time.perf_counter() + seconds, 0
    while runs < 4 or time.perf_counter() < end:
        for arrays in states.values():
            arrays.run(product)
        runs += 1
    return {state: arrays.found() for state, arrays in states.items()}
