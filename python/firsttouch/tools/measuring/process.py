"""Readings of this process and its control group; memory in bytes."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np

from firsttouch.tools.measuring.files import read


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


def cgroup_file(v2: str, v1: str) -> Path | None:
    """A file of this process's memory control group, or of the nearest group above that can be seen."""
    for line in read("/proc/self/cgroup", "").splitlines():
        number, controllers, path = line.split(":", 2)
        if number == "0":
            root, name = Path("/sys/fs/cgroup"), v2
        elif "memory" in controllers.split(","):
            root, name = Path("/sys/fs/cgroup/memory"), v1
        else:
            continue
        if not name:  # there is no such file in this version
            continue
        folder = root / path.lstrip("/")
        while True:
            if (folder / name).exists():
                return folder / name
            if folder == root:
                break
            folder = folder.parent
    return None


def cgroup_current() -> int | None:
    """What the kernel charges to this process's control group now; None where it can't be read."""
    file = cgroup_file("memory.current", "memory.usage_in_bytes")
    return None if file is None else int(file.read_text())


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
