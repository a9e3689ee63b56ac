"""What temporaries cost: operations on arrays of one size under every contender, and `a + b` against warm memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median as middle
from typing import Any

import numpy as np

from benchmarks.measuring import (
    AGAIN,
    EXPRESSIONS,
    FIRSTTOUCH,
    NUMPY,
    QUICK,
    Column,
    Section,
    collect,
    everyone,
    fitting,
    judge,
    judge_times,
    peers,
)
from firsttouch.tools.bench.common import name
from firsttouch.tools.measuring.contenders import preloaded

# ---- What is measured, in a process of its own


Array = np.ndarray[tuple[int], np.dtype[np.float64]]

#: Operations on two arrays, the second of which may be written.
OPERATIONS: dict[str, Callable[[Array, Array], Any]] = {
    "a + b": lambda a, b: a + b,
    "a + b, out=": lambda a, b: np.add(a, a, out=b),
    "(a*b+a)/(b+1.0)-a": lambda a, b: (a * b + a) / (b + 1.0) - a,
    "np.roll": lambda a, _: np.roll(a, 1),
    "np.diff": lambda a, _: np.diff(a),
    "second difference": lambda a, _: a[2:] - 2.0 * a[1:-1] + a[:-2],
}


def measure(nbytes: int, seconds: float) -> dict[str, float]:
    """Return median seconds of each operation in turn, excluding the first."""
    a, b = np.full(nbytes // 8, 1.5), np.full(nbytes // 8, 2.5)
    loops = range(max(1, (1 << 18) // nbytes))
    times: dict[str, list[float]] = {operation: [] for operation in OPERATIONS}
    end = time.perf_counter() + seconds * len(OPERATIONS)
    while len(times["a + b"]) < 3 or time.perf_counter() < end:
        for operation, call in OPERATIONS.items():
            start = time.perf_counter()
            for _ in loops:
                result = call(a, b)
                del result
            times[operation].append((time.perf_counter() - start) / len(loops))
    return {operation: middle(each[1:]) for operation, each in times.items()}


# ---- The experiment


SECONDS, ROUNDS = 0.05, 16
SMALL = (64, 4 << 10)
#: The bar of `a + b` against `out=`, whose result lies in memory that is there.
WARM = 1.05


def run(quick: bool) -> Section:
    """Measure every contender at every size."""
    contenders, rivals = everyone(), peers()
    section = Section(
        "temporaries",
        "Temporaries, compared with NumPy's default and every peer",
        "at most the best peer's time in the geometric mean over the sizes, at no size worse beyond the noise; `a + b` "
        f"at most {WARM} times `out=` on warm memory. Cells are firsttouch's time divided by the column's.",
    )
    sizes, notes = fitting(QUICK if quick else (*SMALL, *EXPRESSIONS), 6 * len(contenders))
    times: dict[str, dict[str, dict[str, Column]]] = {each: {} for each in OPERATIONS}
    warm: dict[str, Column] = {}
    for size in sizes:
        samples = collect(contenders, measure, 2 if quick else ROUNDS, 6 * size, nbytes=size, seconds=SECONDS)
        section.raw[str(size)] = samples.replies
        warm[name(size)] = samples.column(FIRSTTOUCH, "a + b") / samples.column(FIRSTTOUCH, "a + b, out=")
        for operation in OPERATIONS:
            times[operation][name(size)] = samples.columns(operation)
    for operation, by_size in times.items():
        judge_times(section, by_size, (FIRSTTOUCH, NUMPY, AGAIN), rivals, f"`{operation}`")
    section.verdicts.append(judge(f"`a + b`: at most {WARM} times `out=`", WARM, warm))
    section.notes += [*notes, *(f"{absent} is absent on this machine." for absent in preloaded()[1])]
    return section
