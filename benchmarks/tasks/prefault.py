"""Prefault by firsttouch and by a small C program, alternating in one process; and the cost of a full write later."""

from __future__ import annotations

import ctypes
import random
import subprocess
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import firsttouch

WAYS = ("slabs", "chunks", "touch", "lazy")
_shuffle = random.Random(0)


@cache
def program() -> Any:
    """Return the C program's function, compiled."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "prefault.so"
        source = Path(__file__).with_suffix(".c")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-pthread", "-o", library, source], check=True)
        function = ctypes.CDLL(str(library)).prefault
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_size_t, *[ctypes.c_int] * 4]
    return function


def limit(nbytes: int, huge: bool, threads: int, way: str, written: bool = False) -> float:
    """Return the seconds of the C program."""
    seconds: float = program()(nbytes, huge, threads, WAYS.index(way), written)
    if seconds < 0:
        raise OSError(f"the C program could not fault in {nbytes} bytes by {way}")
    return seconds


def measure(nbytes: int, huge: bool, threads: int, ways: list[str]) -> dict[str, float]:
    """Return the seconds of each, in an order that is shuffled anew each time."""
    allocator = firsttouch.pages("thp" if huge else False, populate=threads)
    found: dict[str, float] = {}
    for who in _shuffle.sample(("ours", *ways), len(ways) + 1):
        if who == "ours":
            start = time.perf_counter()
            array = allocator.empty(nbytes, np.uint8)
            found[who] = time.perf_counter() - start
            del array
        else:
            found[who] = limit(nbytes, huge, threads, who)
    return found


def write(nbytes: int, threads: int) -> dict[str, float]:
    """Return the seconds for zeros and a full write: by NumPy, on populated huge pages, and by the C program.

    ``"lazy"`` is the C program with pages that the write faults in. ``"written"`` is the write alone, on resident
    memory that has left the cache since, which corresponds to a prefault without any cost.
    """
    allocator = firsttouch.pages(huge="thp", populate=threads)
    makers: dict[str, Callable[[int], Any]] = {"numpy": np.zeros, "ours": allocator.zeros}
    found: dict[str, float] = {}
    for who in _shuffle.sample((*makers, "slabs", "lazy"), 4):
        if who in makers:
            start = time.perf_counter()
            array = makers[who](nbytes // 8)
            made = time.perf_counter()
            array.fill(1.0)
            end = time.perf_counter()
            found[who] = end - start
            if who == "ours":
                found["written"] = end - made
            del array
        else:
            found[who] = limit(nbytes, True, threads, who, written=True)
    return found
