"""Ways to write memory for the first time, or again, and the pages that were obtained."""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import firsttouch as ft

Array = np.ndarray[Any, np.dtype[np.uint8]]
Maker = Callable[[int], Array]
PAGE = os.sysconf("SC_PAGE_SIZE")
BLOCK = 8192  # items


def loop(array: Array, kind: Any) -> None:
    """Store one item at a time: a source with a negative stride keeps NumPy from its wide copies."""
    whole = array.view(kind)
    source = np.ones(min(BLOCK, whole.size), kind)[::-1]
    rest = whole.size % source.size
    whole[: whole.size - rest].reshape(-1, source.size)[...] = source
    whole[whole.size - rest :] = source[:rest]


def touched(array: Array, threads: int = 1) -> None:
    """Write one byte of each page, divided among threads."""
    cuts = [array.size * number // threads // PAGE * PAGE for number in range(threads)] + [array.size]

    def part(number: int) -> None:
        array[cuts[number] : cuts[number + 1] : PAGE] = 1

    others = [threading.Thread(target=part, args=(number,)) for number in range(1, threads)]
    for thread in others:
        thread.start()
    part(0)
    array[-1] = 1  # an array that begins within a page extends to one more
    for thread in others:
        thread.join()


#: What is done to new memory; the allocation is part of the time.
NEW: dict[str, Callable[[Array], object]] = {
    "touched": touched,
    "byte by byte": lambda array: loop(array, np.uint8),
    "word by word": lambda array: loop(array, np.uint64),
    "memset": lambda array: ctypes.memset(array.ctypes.data, 1, array.size),
}


def result(array: Array, seconds: float, fallbacks: int) -> dict[str, Any]:
    """Return the rate, and the residency of the array: a way that left out pages did not do the work."""
    found, receipt = ft.inspect(array), ft.receipt(array)
    return {
        "rate": array.size / seconds,
        "bytes": found.pages * found.page_size,
        "missing": (found.absent or 0) + (found.zero_page or 0),
        "huge": found.huge or 0,
        "fallbacks": fallen_back() - fallbacks,
        "why not": list(receipt.why_not) if receipt else [],
    }


def fallen_back() -> int:
    """Return the machine's count of huge page faults that were served with small pages."""
    try:
        lines = Path("/proc/vmstat").read_text().splitlines()
    except OSError:
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("thp_fault_fallback "))


def placed(nbytes: int, huge: Any, populate: int, threads: int, processors: int) -> dict[str, Any]:
    """Measure pages of one kind, populated or touched by some threads, on some processors."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:processors])
    allocator = ft.pages(huge=tuple(huge) if isinstance(huge, list) else huge, populate=populate or False)
    fallbacks, start = fallen_back(), time.perf_counter()
    array: Array = allocator.empty(nbytes, np.uint8)
    if not populate:
        touched(array, threads)
    return result(array, time.perf_counter() - start, fallbacks)


def allocated(nbytes: int, maker: str, way: str) -> dict[str, Any]:
    """Measure memory of the C library or NumPy, written for the first time in one way."""
    make = MAKERS[maker]
    fallbacks, start = fallen_back(), time.perf_counter()
    array = make(nbytes)
    NEW[way](array)
    return result(array, time.perf_counter() - start, fallbacks)


def existing(nbytes: int, maker: str, way: str) -> dict[str, Any]:
    """Measure the C library's memset and memcpy on memory that is already resident."""
    make, fallbacks = MAKERS[maker], fallen_back()
    target, source = make(nbytes), make(nbytes)
    target.fill(1)
    source.fill(2)
    start = time.perf_counter()
    if way == "memset":
        ctypes.memset(target.ctypes.data, 3, nbytes)
    else:
        ctypes.memmove(target.ctypes.data, source.ctypes.data, nbytes)
    return result(target, time.perf_counter() - start, fallbacks)


MAKERS: dict[str, Maker] = {
    "calloc": lambda nbytes: ft.calloc().zeros(nbytes, np.uint8),
    "malloc": lambda nbytes: ft.malloc().empty(nbytes, np.uint8),
    "np.zeros": lambda nbytes: np.zeros(nbytes, np.uint8),
    "np.empty": lambda nbytes: np.empty(nbytes, np.uint8),
}
