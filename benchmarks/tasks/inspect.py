"""`ft.inspect` of an array whose pages are in one state or another."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median as middle

import numpy as np

import firsttouch as ft
from firsttouch import _firsttouch

PAGE = 4096


#: Where the pages come from, and the distance of those that are written; 0 for none.
STATES: dict[str, tuple[Callable[[], ft.Allocator], int]] = {
    "absent": (ft.pages, 0),
    "small pages": (ft.pages, PAGE),
    "huge pages": (lambda: ft.pages("thp"), PAGE),
    "every other page": (ft.pages, 2 * PAGE),
}
#: The features that a kernel may lack, by name.
WITHOUT: dict[str, list[str]] = {
    "": [],
    "nodes by move_pages": ["has_memory"],
    "no PAGEMAP_SCAN": ["PAGEMAP_SCAN"],
}

_kept: dict[tuple[int, str], np.ndarray] = {}


def measure(nbytes: int, state: str, without: str) -> dict[str, float]:
    """Return the seconds of one inspection, the median of five; the array is created once."""
    if (nbytes, state) not in _kept:
        _kept.clear()
        source, step = STATES[state]
        array = source().zeros(nbytes, np.uint8)
        if step:
            array[::step] = 1
        _kept[nbytes, state] = array
    array = _kept[nbytes, state]
    times = []
    _firsttouch.refuse_sources(WITHOUT[without])
    try:
        for _ in range(5):
            start = time.perf_counter()
            found = ft.inspect(array)
            times.append(time.perf_counter() - start)
    finally:
        _firsttouch.refuse_sources([])
    return {"seconds": middle(times), "pages": found.pages}
