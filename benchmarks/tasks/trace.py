"""Loops that allocate all the time, for the cost of recording; and the kernels, for its cost in real programs."""

from __future__ import annotations

import importlib
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.kernels import NAMES as KERNELS
from firsttouch import _firsttouch

LENGTHS = {8: 200_000, 1_000: 100_000, 9_000: 30_000, 15_000: 20_000, 100_000: 2_000}
LOOPS = {f"sums of {length:,} numbers": length for length in LENGTHS}
NAMES = (*LOOPS, *KERNELS)


def _loop(length: int) -> float:
    a = np.ones(length)
    start = time.perf_counter()
    for _ in range(LENGTHS[length]):
        a + a
    return time.perf_counter() - start


def _program(name: str) -> float:
    if name in LOOPS:
        return _loop(LOOPS[name])
    kernel = importlib.import_module(f"benchmarks.kernels.{name}")
    start = time.perf_counter()
    kernel.run()
    return time.perf_counter() - start


def measure(name: str, rounds: int) -> dict[str, float]:
    """Return seconds with and without a recorder, alternating in one process; events and bytes of the last trace."""
    times: dict[bool, list[float]] = {True: [], False: []}
    events = size = 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.ft"
        _firsttouch.trace_begin(str(file), [])  # from now on its handler is in place in both cases
        _firsttouch.trace_end([])
        _program(name)
        for turn in range(2 * rounds):
            traced = turn % 4 in (0, 3)  # in an order that cancels drift
            if traced:
                _firsttouch.trace_begin(str(file), [])
            times[traced].append(_program(name))
            if traced:
                done = _firsttouch.trace_end([])
                assert done is not None
                events, size, _ = done
    ratio = float(np.median(np.array(times[True]) / np.array(times[False])))
    plain = float(np.median(times[False]))
    return {"ratio": ratio, "seconds": plain, "events": events, "bytes": size}
