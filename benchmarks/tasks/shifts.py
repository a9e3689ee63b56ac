"""Operations whose result is shifted against their operand by an element."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median as middle
from typing import Any

import numpy as np

from firsttouch.inspection import check_backed

_operands: dict[int, Any] = {}

OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "np.roll": lambda x: np.roll(x, 1),
    "np.roll of rows": lambda x: np.roll(x.reshape(-1, 512), 1, axis=1),
    "np.insert": lambda x: np.concatenate(([1.0], x)),
    "np.diff": np.diff,
    "second difference": lambda x: x[2:] - 2.0 * x[1:-1] + x[:-2],
}


def measure(nbytes: int, operation: str, seconds: float) -> dict[str, float]:
    """Return median seconds of one operation, excluding the first of the round."""
    if nbytes not in _operands:
        _operands[nbytes] = np.linspace(0.0, 1.0, nbytes // 8)
    x, call = _operands[nbytes], OPERATIONS[operation]
    clock = time.perf_counter
    times: list[float] = []
    with check_backed(x):
        end = clock() + seconds
        while len(times) < 3 or clock() < end:
            start = clock()
            result = call(x)
            del result
            times.append(clock() - start)
    return {"seconds": middle(times[1:])}
