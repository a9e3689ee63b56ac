"""A function with six temporaries, in the current memory, under `use`, and in a scratch scope: call by call."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[np.float64]]


def scalar(a: Array, b: Array) -> float:
    """Use six temporaries, most of which are freed one after another; return a number."""
    x = (a * b + a) / (b + 1.0)
    y = np.sqrt(x - a * 0.25)
    return float(y.sum())


def array(a: Array, b: Array) -> Array:
    """Use six temporaries that are live until the end; return the last."""
    product = a * b
    above = product + a
    below = b + 1.0
    quotient = above / below
    more = quotient + a
    root: Array = np.sqrt(more)
    return root


FUNCTIONS: dict[str, Callable[[Array, Array], Any]] = {"scalar": scalar, "array": array}
_made: dict[str, dict[str, Callable[[Array, Array], Any]]] = {}
_operands: dict[int, tuple[Array, Array]] = {}
_shuffle = random.Random(0)


def kinds(name: str) -> dict[str, Callable[[Array, Array], Any]]:
    """Return the plain function, and decorated ones; *again* repeats one, for the A/A row."""
    if name not in _made:
        import firsttouch as ft

        function = FUNCTIONS[name]
        _made[name] = {
            "plain": function,
            "use": ft.use(ft.pool())(function),
            "scratch": ft.scratch(function),
            "again": ft.scratch(function),
        }
    return _made[name]


def calls(function: Callable[[Array, Array], Any], a: Array, b: Array, count: int) -> list[int]:
    """Return the nanoseconds of each call, excluding the first few, for which caches are cold."""
    clock = time.perf_counter_ns
    times: list[int] = []
    warming = min(3, 1 + count // 8)
    for _ in range(warming + count):
        start = clock()
        result = function(a, b)
        times.append(clock() - start)
        del result
    return times[warming:]


def percentiles(times: Sequence[int]) -> tuple[float, float]:
    """Return the median and the 95th percentile, in seconds."""
    middle, high = np.percentile(times, [50, 95])
    return float(middle) * 1e-9, float(high) * 1e-9


def measure(nbytes: int, seconds: float) -> dict[str, float]:
    """Measure each kind in short runs, in shuffled order, until each had its seconds and at least ten calls."""
    if nbytes not in _operands:
        _operands[nbytes] = (np.full(nbytes // 8, 1.5), np.full(nbytes // 8, 2.5))
    a, b = _operands[nbytes]
    reply: dict[str, float] = {}
    for name in FUNCTIONS:
        made = kinds(name)
        times: dict[str, list[int]] = {kind: [] for kind in made}
        calls(made["plain"], a, b, 2)
        once = min(calls(made["scratch"], a, b, 3)) * 1e-9
        run = max(5, min(200, int(0.004 / once)))
        for _ in range(max(-(-10 // run), int(seconds / (run * once)))):
            for kind in _shuffle.sample(list(made), len(made)):
                times[kind] += calls(made[kind], a, b, run)
        for kind, row in times.items():
            middle, high = percentiles(row)
            reply[f"{name} {kind}"] = middle
            reply[f"{name} {kind} spread"] = high / middle
    return reply
