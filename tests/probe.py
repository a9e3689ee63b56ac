"""Helpers of programs under test. Imports nothing of firsttouch's."""

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

Bytes = np.ndarray[tuple[int], np.dtype[np.uint8]]


def status(name: str) -> int:
    """A size in /proc/self/status in bytes: VmRSS, VmPeak, VmSize, VmHWM, ..."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0]) * KIB
    raise LookupError(name)


def rss() -> int:
    """Resident bytes, summed over the mappings as the kernel knows them now."""
    for line in Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) * KIB
    raise LookupError("Rss")


def threads() -> list[str]:
    """The names of this process's threads."""
    tasks = Path("/proc/self/task").iterdir()
    return [(task / "comm").read_text(encoding="ascii").strip() for task in tasks]


_base = b""


def pattern(size: int, seed: int) -> Bytes:
    """`size` bytes that tell which `seed` wrote them, and where. Their memory is Python's, not NumPy's."""
    global _base
    start = seed * 8191 % 1_000_003
    if start + size > len(_base):
        period = random.Random(1).randbytes(1_000_003)  # a prime: it meets no page at the same place again
        _base = period * ((start + size) // len(period) + 2)
    return np.frombuffer(_base, np.uint8, size, start)


def fill(array: Bytes, seed: int) -> None:
    array[:] = pattern(array.size, seed)


def intact(array: Bytes, seed: int, size: int | None = None) -> bool:
    """Whether the first `size` bytes are still as `fill` wrote them."""
    size = array.size if size is None else size
    return bool(np.array_equal(array[:size], pattern(size, seed)))


def wait_until(holds: Callable[[], bool], seconds: float = 60) -> bool:
    """Whether something comes true in time."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def message(kind: type[BaseException], call: Callable[[], Any]) -> str:
    """What the exception says that `call` must raise."""
    try:
        call()
    except kind as error:
        return str(error)
    sys.exit(f"no {kind.__name__} was raised")
