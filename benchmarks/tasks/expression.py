"""An expression with several temporaries."""

from __future__ import annotations

import time
from statistics import median as middle
from typing import Any

import numpy as np

from firsttouch.inspection import check_backed

_operands: dict[int, Any] = {}


def measure(nbytes: int, seconds: float) -> dict[str, float]:
    """Return median seconds of one evaluation, excluding the first of the round."""
    if nbytes not in _operands:
        _operands[nbytes] = (np.full(nbytes // 8, 1.5), np.full(nbytes // 8, 2.5))
    a, b = _operands[nbytes]
    clock = time.perf_counter
    loops = range(max(1, (1 << 18) // nbytes))
    times: list[float] = []
    with check_backed(a, b):
        end = clock() + seconds
        while len(times) < 3 or clock() < end:
            start = clock()
            for _ in loops:
                result = (a * b + a) / (b + 1.0) - a
                del result
            times.append((clock() - start) / len(loops))
    return {"seconds": middle(times[1:])}
