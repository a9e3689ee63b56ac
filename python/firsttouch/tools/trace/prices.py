"""The cost of page faults on this machine, measured in a few milliseconds.

The cost of a page is what it adds to a fill: mapping, faulting in and unmapping fresh memory, minus the same fill of
resident memory. It includes the effect of the kernel's zeroing on the caches, as a program would see it.

Processor time is counted, not time on the clock: on a busy machine hardly any round ends without an interruption.
"""

from __future__ import annotations

import contextlib
import mmap
import time
from dataclasses import dataclass

import numpy as np

_ROUNDS = 5
_SMALL, _HUGE = 4 << 20, 16 << 20
_MAPPINGS = 20


@dataclass(frozen=True)
class Prices:
    """Seconds for a base page, a huge page, mapping and unmapping, and a byte that a pool clears."""

    small: float
    huge: float
    mapped: float
    clear: float
    page: int
    huge_page: int

    def of(self, small: float, huge: float, mapped: float) -> float:
        """Return the seconds that these faults and mappings take."""
        return small * self.small + huge * self.huge + mapped * self.mapped


def calibrate(huge_page: int) -> Prices:
    """Measure; if huge pages are not available, they cost as much as their base pages."""
    page = mmap.PAGESIZE
    small, warm = _per_byte(_SMALL, getattr(mmap, "MADV_NOHUGEPAGE", None), page)
    huge = small
    if huge_page:
        huge, _ = _per_byte(max(_HUGE // huge_page, 2) * huge_page, getattr(mmap, "MADV_HUGEPAGE", None), huge_page)
    return Prices(small * page, huge * (huge_page or page), _mapping(), warm, page, huge_page)


def _mapping() -> float:
    """Return the seconds of a mapping of which nothing is touched; the fastest round, as below."""
    best = float("inf")
    for _ in range(_ROUNDS):
        begin = time.thread_time()
        for _ in range(_MAPPINGS):
            mmap.mmap(-1, _SMALL, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
        best = min(best, (time.thread_time() - begin) / _MAPPINGS)
    return best


def _per_byte(size: int, advice: int | None, align: int) -> tuple[float, float]:
    """Return the extra seconds for a byte of fresh memory, and the seconds for a byte of warm memory."""
    rounds = [_round(size, advice, align) for _ in range(_ROUNDS)]
    # The fastest round: others wait for a hypervisor that backs memory for the first time, or for other programs.
    whole, warm = min(whole for whole, _ in rounds), min(warm for _, warm in rounds)
    return max(0.0, whole - warm) / size, warm / size


def _round(size: int, advice: int | None, align: int) -> tuple[float, float]:
    """Return the seconds to map, fill and unmap, and to fill again."""
    begin = time.thread_time()
    memory = mmap.mmap(-1, size + align, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    if advice is not None:
        with contextlib.suppress(OSError):  # without huge pages, small ones are measured
            memory.madvise(advice)
    whole = np.frombuffer(memory, np.uint8)
    start = -whole.ctypes.data % align
    array = whole[start : start + size]
    array.fill(1)
    filled = time.thread_time()
    array.fill(2)
    again = time.thread_time()
    del whole, array
    memory.close()
    closed = time.thread_time()
    return (filled - begin) + (closed - again), again - filled


def huge_page_size() -> int:
    """Return the size of a transparent huge page, or 0 if the kernel has none."""
    try:
        with open("/sys/kernel/mm/transparent_hugepage/enabled", encoding="ascii") as text:
            if "[never]" in text.read():
                return 0
        with open("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", encoding="ascii") as text:
            return int(text.read())
    except (OSError, ValueError):
        return 0
