"""An estimate of what page faults cost on this machine, as far as it can be measured outside the kernel.

The cost of one fault is measured at the end of the run, on a few fresh pages. That is an upper bound, and so is the
time spent in the kernel. Recycled memory would otherwise have been faulted in, at most all of it; fresh memory of small
arrays, page by page.
"""

import time

from _firsttouch_start import library

#: Below this share of the time, memory is not what limits a program.
WORTH_MENTIONING = 0.01

_PAGES = 256
#: NumPy requests huge pages itself for arrays of this many bytes and more.
_NUMPYS_HUGE = 4 << 20


def seconds_per_fault() -> float | None:
    """Time the first and the second touch of fresh pages; the difference is the cost of the faults."""
    try:
        mmap = library.borrow("mmap")
        fresh = mmap.mmap(-1, _PAGES * mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (ImportError, AttributeError, OSError, ValueError):
        return None  # such a mapping is not supported, or there is no room for it
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
    """Estimate the seconds spent in faults, those avoided at most, and both as shares of the time without a pool.

    At most, because what was avoided might have been faulted in on huge pages, or not at all.
    """
    price = seconds_per_fault()
    if price is None:
        return None
    spent = min(kernel, (faults + huge_bytes / page) * price)
    saved = avoided / page * price
    return {
        "seconds_per_fault": price,
        "fault_seconds": spent,
        "avoided_fault_seconds_at_most": saved,
        # Several threads may take faults at once.
        "fault_share_at_most": min(1.0, (spent + saved) / (wall + saved)) if wall > 0 else 0.0,
        "avoided_fault_share_at_most": saved / (wall + saved) if wall > 0 else 0.0,
    }


def joined_bytes(huge_bytes: float, blocks: float, block_bytes: float) -> float:
    """Return the bytes on huge pages that NumPy would have faulted in page by page, going by the mean block."""
    return huge_bytes if block_bytes < _NUMPYS_HUGE * blocks else 0


def numpy_faults(small_bytes: float, huge_bytes: float, page: int, huge_page: int) -> float:
    """Return the number of faults that fresh array memory takes if every page is touched."""
    return small_bytes / page + (huge_bytes / huge_page if huge_page else 0)


def page_sizes() -> tuple[int, int]:
    """Return the base and the huge page size of this machine; a huge page size of 0 means none."""
    import os

    page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
    try:
        with open("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", encoding="ascii") as text:
            return page, int(text.read())
    except (OSError, ValueError):
        return page, 0
