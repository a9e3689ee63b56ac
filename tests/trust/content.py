"""What arrays should contain: a fixed sequence of bytes, from a place that each array has of its own."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

import numpy as np

PERIOD = 1_000_003
_TWICE = np.frombuffer(random.Random(7).randbytes(PERIOD) * 2, np.uint8)


def expected(place: int, nbytes: int) -> np.ndarray[Any, Any]:
    """Return up to a period of what belongs to a place."""
    return _TWICE[place % PERIOD :][: min(nbytes, PERIOD)]


@dataclass
class Filled:
    """An array, and the place from which its bytes come."""

    array: np.ndarray[Any, Any]
    place: int
    made: str
    """How the array was made, for messages."""

    def bytes(self) -> np.ndarray[Any, Any]:
        return self.array.reshape(-1).view(np.uint8)

    def fill(self) -> None:
        flat = self.bytes()
        for start in range(0, flat.size, PERIOD):
            part = flat[start : start + PERIOD]
            part[:] = expected(self.place, part.size)

    def check(self) -> None:
        flat = self.bytes()
        for start in range(0, flat.size, PERIOD):
            part = flat[start : start + PERIOD]
            if not np.array_equal(part, expected(self.place, part.size)):
                wrong = int(np.flatnonzero(part != expected(self.place, part.size))[0]) + start
                raise AssertionError(f"byte {wrong} of {flat.size} is wrong in an array made by {self.made}")
