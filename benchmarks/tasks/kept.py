"""Arrays of random sizes that are made, written once and kept."""

from __future__ import annotations

import resource
import time

import numpy as np

TOTAL = 256 << 20


def measure(low: int, high: int) -> dict[str, float]:
    """Return the processor time, page faults and peak of arrays of `low` to `high` bytes, 256 MiB together."""
    sizes = np.random.default_rng(1).integers(low, high, size=2 * TOTAL // (low + high)).tolist()
    kept = []
    before, start = resource.getrusage(resource.RUSAGE_SELF), time.process_time()
    for size in sizes:
        array = np.empty(size, np.uint8)
        array.fill(1)
        kept.append(array)
    seconds = time.process_time() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    return {"seconds": seconds, "faults": after.ru_minflt - before.ru_minflt, "peak": after.ru_maxrss << 10}
