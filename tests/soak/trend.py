"""Samples of what the process holds, and whether they rise."""

from __future__ import annotations

import gc
import os
import statistics
import time
from collections.abc import Sequence

from firsttouch._internal.resolve import _of_text

NAMES = ("resident MiB", "mappings", "files", "threads")
TOLERATED = {"resident MiB": 24.0, "mappings": 20.0, "files": 3.0, "threads": 1.0}
"""How far the median of the last fifth may lie above that of the middle fifth: what comes and goes by itself."""


def sample() -> tuple[float, ...]:
    """Return what the process holds, without what the allocators of the last expressions keep: guarded ones keep freed
    blocks, so that this depends on which expressions came last."""
    _of_text.cache_clear()
    gc.collect()
    time.sleep(0.05)
    with open("/proc/self/statm", encoding="ascii") as statm:
        resident = int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / (1 << 20)
    with open("/proc/self/maps", "rb") as maps:
        mappings = sum(1 for _ in maps)
    return resident, mappings, len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))


def rise(values: Sequence[float]) -> float:
    """Return by how much the last fifth lies above the middle one, as medians."""
    fifth = max(len(values) // 5, 1)
    return statistics.median(values[-fifth:]) - statistics.median(values[2 * fifth : 3 * fifth])


def report(samples: Sequence[tuple[float, ...]]) -> list[str]:
    """Print each figure's course, and return those that rise."""
    rising = []
    for name, values in zip(NAMES, zip(*samples, strict=True), strict=True):
        up = rise(values)
        print(f"{name:>13}  {min(values):8.0f} to {max(values):.0f}, at the end {up:+.1f}")
        if up > TOLERATED[name]:
            rising.append(f"{name} by {up:.0f}")
    return rising
