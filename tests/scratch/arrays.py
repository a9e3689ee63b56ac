"""Arrays that tests follow: of sizes on each side of every limit, with contents that identify them."""

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np

CHUNK = 1 << 20
"""Bytes of a chunk, where nobody says another number."""
SMALL = 800
"""Bytes that NumPy serves itself."""
MIDDLE = 50_000
"""Bytes that lie in a chunk."""
LARGE = 600_000
"""Bytes that get memory of their own: more than an eighth of a chunk."""

_seeds = itertools.count(1)


class Kept:
    """Arrays that live, whose every byte is known."""

    def __init__(self) -> None:
        self.arrays: list[tuple[Any, Any]] = []

    def __len__(self) -> int:
        return len(self.arrays)

    def add(self, array: Any) -> Any:
        """Writes to an array of bytes, and follows it."""
        content = np.frombuffer(random.Random(next(_seeds)).randbytes(array.size), np.uint8)  # Python's memory
        array[:] = content
        self.arrays.append((array, content))
        return array

    def make(self, size: int = MIDDLE, make: Callable[..., Any] | None = None) -> Any:
        """A new one, from NumPy or from `make`."""
        return self.add((make or np.empty)(size, np.uint8))

    def intact(self) -> bool:
        return all(np.array_equal(array, content) for array, content in self.arrays)

    def clear(self) -> None:
        self.arrays.clear()


def churn(turns: int = 3) -> None:
    """Overwrites whatever the current memory believes to be free."""
    for size in (SMALL, 5_000, MIDDLE, 120_000, LARGE) * turns:
        held = [np.full(size, 0xA5, np.uint8) for _ in range(4)]
        del held
