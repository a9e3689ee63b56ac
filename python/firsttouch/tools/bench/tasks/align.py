"""Copies, additions and sums of float32 arrays at given offsets."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from statistics import median as middle
from typing import Any

import numpy as np

import firsttouch as ft

PAGE = 4096
Array = np.ndarray[tuple[int], np.dtype[np.float32]]
OPERATIONS: dict[str, Callable[[Array, Array, Array], Any]] = {
    "copy": lambda a, _b, c: np.copyto(c, a),
    "add": lambda a, b, c: np.add(a, b, out=c),
    "sum": lambda a, _b, _c: np.add.reduce(a),
}
_blocks: dict[int, Any] = {}
_shuffle = random.Random(0)


def arrays(nbytes: int, at: Sequence[int]) -> list[Array]:
    """Return arrays of this size that begin `at` bytes into a page, next to each other in one block."""
    room = -(-(nbytes + PAGE) // PAGE) * PAGE
    if nbytes not in _blocks:  # the same pages for all layouts, so that only the addresses differ
        _blocks[nbytes] = ft.pages(huge="thp", populate=True).zeros(len(at) * room, np.uint8)
        _blocks[nbytes].fill(1)
    starts = [number * room + offset for number, offset in enumerate(at)]
    return [_blocks[nbytes][start : start + nbytes].view(np.float32) for start in starts]


def seconds(function: Callable[[], Any], loops: range) -> float:
    """Return the seconds of one call."""
    start = time.perf_counter()
    for _ in loops:
        function()
    return (time.perf_counter() - start) / len(loops)


def measure(nbytes: int, layouts: Mapping[str, Sequence[int]], turns: int, usual: float) -> dict[str, float]:
    """Return the median seconds of each operation in each layout, in shuffled runs of about `usual` seconds each.

    The time of the call itself, measured on one item, is subtracted.
    """
    reply: dict[str, float] = {"plain": np.empty(nbytes, np.uint8).ctypes.data % 64}
    for operation, function in OPERATIONS.items():
        calls = {name: partial(function, *arrays(nbytes, at)) for name, at in layouts.items()}
        calls["one item"] = partial(function, *arrays(4, (0, 0, 0)))
        once = min(seconds(next(iter(calls.values())), range(1)) for _ in range(3))
        loops = range(max(1, min(2000, int(usual / once))))
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(turns):
            for name in _shuffle.sample(list(calls), len(calls)):
                times[name].append(seconds(calls[name], loops))
        call = middle(times.pop("one item"))
        reply |= {f"{operation} {name}": max(middle(row) - call, 1e-9) for name, row in times.items()}
    return reply
