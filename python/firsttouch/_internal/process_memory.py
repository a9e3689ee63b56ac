"""The resident memory of this process, in bytes."""

from __future__ import annotations

import mmap
from pathlib import Path
from typing import Any

import numpy as np


def status(key: str) -> int:
    """Return a field of /proc/self/status, such as VmRSS or VmHWM."""
    for line in Path("/proc/self/status").read_text(errors="replace").splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) << 10
    raise KeyError(key)


def resident() -> int:
    """Return the exact resident memory; the kernel's fast counters lag behind by some pages per thread."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) << 10
    return status("VmRSS")


def reset_peak() -> None:
    """Reset VmHWM to the current resident memory."""
    Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    """Return the peak of the resident memory since `reset_peak`."""
    return status("VmHWM")


def touch(nbytes: int) -> None:
    """Touch that much memory once, outside the allocator under test, and free it.

    In a virtual machine the host provides memory at the first touch, far more slowly than the kernel's own fault.
    """
    if nbytes <= 0:
        return
    private: Any = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_PRIVATE") else {}
    with mmap.mmap(-1, nbytes, **private) as memory:
        if hasattr(mmap, "MADV_HUGEPAGE"):
            memory.madvise(mmap.MADV_HUGEPAGE)
        pages = np.frombuffer(memory, np.uint8)
        pages[:: mmap.PAGESIZE] = 1
        del pages
