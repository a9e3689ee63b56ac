"""Prefault by us and by a small C program, in one process and in turn; and what a full write costs after it."""

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

WAYS = ("slabs", "chunks", "touch")
_shuffle = random.Random(0)


@cache
def program() -> Any:
    """The C program's function, compiled."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "prefault.so"
        source = Path(__file__).with_suffix(".c")
        subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-pthread", "-o", library, source], check=True)
        function = ctypes.CDLL(str(library)).prefault
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int]
    return function


def measure(nbytes: int, huge: bool, threads: int) -> dict[str, float]:
    """Seconds of each, in an order that is shuffled anew each time."""
    allocator = firsttouch.pages("thp" if huge else False, populate=threads)
    found: dict[str, float] = {}
    for who in _shuffle.sample(("ours", *WAYS), len(WAYS) + 1):
        if who == "ours":
            start = time.perf_counter()
            array = allocator.empty(nbytes, np.uint8)
            found[who] = time.perf_counter() - start
            del array
        else:
            found[who] = program()(nbytes, huge, threads, WAYS.index(who))
            if found[who] < 0:
                raise OSError(f"the C program could not make {nbytes} bytes real by {who}")
    return found


def write(nbytes: int) -> dict[str, float]:
    """Seconds for zeros and a full write, by NumPy and on huge pages that were populated."""
    allocator = firsttouch.pages(huge="thp", populate=True)
    makers: dict[str, Callable[[int], Any]] = {"numpy": np.zeros, "ours": allocator.zeros}
    found: dict[str, float] = {}
    for who in _shuffle.sample(tuple(makers), len(makers)):
        start = time.perf_counter()
        array = makers[who](nbytes // 8)
        array.fill(1.0)
        found[who] = time.perf_counter() - start
        del array
    return found
