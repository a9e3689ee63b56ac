"""Arrays that tell whether somebody else wrote to them, and where threads leave them for each other."""

import random
from typing import Any

import numpy as np

import firsttouch as ft
from tests.free_threading.forks import UNFORKED

Array = np.ndarray[Any, np.dtype[np.int64]]

STEP = 64
"""Items between those that are checked: each page of an array is."""

SIZES = (1, 100, 500, 3_000, 9_000, 40_000, 200_000, 700_000)
"""Items, from NumPy's own small arrays to the pool's huge pages."""


class Left:
    """Arrays that any thread adds and any takes: most are freed by another thread than the one that made them."""

    def __init__(self, room: int = 64) -> None:
        self.arrays: list[tuple[Array, int]] = []
        self.room = room

    def add(self, array: Array, mark: int) -> None:
        with UNFORKED:
            self.arrays.append((array, mark))
        if len(self.arrays) > self.room:
            self.take()

    def take(self) -> None:
        with UNFORKED:
            if not self.arrays:
                return
            array, mark = self.arrays.pop(0)
        check(array, mark)


def size(random: random.Random) -> int:
    return random.choice(SIZES) + random.randrange(64)


def marked(array: Array, mark: int) -> Array:
    array[::STEP] = mark
    array[-1] = mark
    return array


def check(array: Array, mark: int) -> None:
    wrong = np.flatnonzero(array[::STEP] != mark)
    if wrong.size or array[-1] != mark:
        where = int(wrong[0]) * STEP if wrong.size else array.size - 1
        raise AssertionError(f"item {where} of {array.size} is {array[where]:#x}, and was {mark:#x} ({ft.stats()})")


def zeros(count: int) -> Array:
    array = np.zeros(count, np.int64)
    if array[::STEP].any():
        raise AssertionError(f"np.zeros({count}) is not zero")
    return array
