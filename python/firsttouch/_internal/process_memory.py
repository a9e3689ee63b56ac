"""The resident memory of this process, in bytes."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np


def status(key: str) -> int:
    """A field of /proc/self/status, such as VmRSS or VmHWM."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) << 10
    raise KeyError(key)


def resident() -> int:
    """Resident memory, exactly: the kernel's quick counters lag behind by some pages per thread."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) << 10
    return status("VmRSS")


def reset_peak() -> None:
    """Let VmHWM start again from what is resident now."""
    Path("/proc/self/clear_refs").write_text("5")


def peak() -> int:
    """The most that was resident since `reset_peak`."""
    return status("VmHWM")


def touch(nbytes: int) -> None:
    """Make that much memory real once, outside the allocator under test, and give it back.

    A guest's host hands memory over at the first touch, far slower than the kernel's own fault.
    """
    if nbytes <= 0:
        return
    with mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        pages = np.frombuffer(memory, np.uint8)
        pages[:: mmap.PAGESIZE] = 1
        del pages
