"""`np.zeros`, an action on it, and the resident memory meanwhile."""

from __future__ import annotations

import time
from statistics import median as middle

import numpy as np

from firsttouch._internal.process_memory import resident

_baseline: list[int] = []


def measure(nbytes: int, action: str, seconds: float) -> dict[str, float]:
    """Create, act and free repeatedly, excluding the first time of the round."""
    if not _baseline:
        _baseline.append(resident())
    clock = time.perf_counter
    times: list[float] = []
    living: list[int] = []
    end = clock() + seconds
    while len(times) < 2 or clock() < end:
        start = clock()
        array = np.zeros(nbytes // 8)
        if action == "write all":
            array.fill(1.0)
        elif action == "write sparsely":
            array[:: (1 << 20) // 8] = 1.0
        took = clock() - start
        if len(living) < 2:  # the first is fresh, the second may be recycled
            living.append(resident() - _baseline[0])
        start = clock()
        del array
        times.append(took + clock() - start)
    return {"seconds": middle(times[1:]), "resident": max(living)}
