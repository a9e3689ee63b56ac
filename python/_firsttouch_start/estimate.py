"""What page faults cost here, as far as it can be told from outside the kernel: an estimate.

The price of one fault is measured at the end of the run, on a few fresh pages. Faults cost at
most that each, and never more than all the time that was spent in the kernel. What the pool
recycled would otherwise have been faulted in, at most all of it.
"""

import time

from _firsttouch_start import library

#: Below this share of the time, memory is not what a program waits for.
WORTH_MENTIONING = 0.01

_PAGES = 256


def seconds_per_fault() -> float | None:
    """Touch fresh pages once and again; the difference is the faults."""
    try:
        mmap = library.borrow("mmap")
        fresh = mmap.mmap(-1, _PAGES * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (ImportError, AttributeError, OSError, ValueError):
        return None  # no such mapping here, or no room left for it
    offsets = range(0, len(fresh), mmap.PAGESIZE)
    rounds = []
    with fresh:
        for _ in range(2):
            begin = time.perf_counter()
            for offset in offsets:
                fresh[offset] = 1
            rounds.append(time.perf_counter() - begin)
    return max(0.0, (rounds[0] - rounds[1]) / _PAGES)


def time_in_faults(
    wall: float, kernel: float, faults: float, huge_bytes: float, avoided: float, page: int
) -> dict[str, float] | None:
    """Estimate seconds in faults, seconds avoided, and their share of the time without a pool."""
    price = seconds_per_fault()
    if price is None:
        return None
    spent = min(kernel, (faults + huge_bytes / page) * price)
    saved = avoided / page * price
    return {
        "seconds_per_fault": price,
        "fault_seconds": spent,
        "avoided_fault_seconds": saved,
        "fault_share": (spent + saved) / (wall + saved) if wall > 0 else 0.0,
        "avoided_fault_share": saved / (wall + saved) if wall > 0 else 0.0,
    }


def numpy_faults(small_bytes: float, huge_bytes: float, page: int, huge_page: int) -> float:
    """Count the faults that fresh array memory takes: one a page, if every page is touched."""
    return small_bytes / page + (huge_bytes / huge_page if huge_page else 0)


def page_sizes() -> tuple[int, int]:
    """Read the small and the huge page size of this machine; a huge page of 0 means none."""
    import os

    page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
    try:
        with open("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", encoding="ascii") as text:
            return page, int(text.read())
    except (OSError, ValueError):
        return page, 0
