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
    QUICK,
    Matrix,
    Plan,
    Section,
    against_best,
    collect,
    everyone,
    fitting,
    geometric_mean,
    judge,
    losses,
    median,
    peers,
)
from firsttouch.tools.bench.common import name
from firsttouch.tools.measuring.contenders import FIRSTTOUCH, NUMPY, preloaded
from firsttouch.tools.measuring.processes import Call
from firsttouch.tools.measuring.report import Table

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
_operands: dict[int, tuple[Array, Array]] = {}


def measure(nbytes: int, seconds: float) -> dict[str, float]:
    """Return median seconds of each operation in turn, excluding the first of the round."""
    if nbytes not in _operands:
        _operands[nbytes] = np.full(nbytes // 8, 1.5), np.full(nbytes // 8, 2.5)
    a, b = _operands[nbytes]
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


SECONDS = 0.02
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
    others = [NUMPY, AGAIN, *rivals]
    sizes, notes = fitting(QUICK if quick else (*SMALL, *EXPRESSIONS), 6 * len(contenders))
    cells: dict[str, dict[str, dict[str, Matrix]]] = {each: {} for each in OPERATIONS}
    times: dict[str, dict[str, float]] = {each: {} for each in OPERATIONS}
    warm: dict[str, Matrix] = {}
    for size in sizes:
        call = Call("benchmarks.experiments.temporaries", "measure", {"nbytes": size, "seconds": SECONDS})
        samples = collect(contenders, call, Plan.steady(quick), 6 * size)
        section.raw[str(size)] = samples.replies
        warm[name(size)] = samples.column(FIRSTTOUCH, "a + b") / samples.column(FIRSTTOUCH, "a + b, out=")
        for operation in OPERATIONS:
            ours = samples.column(FIRSTTOUCH, operation)
            row = {other.name: ours / samples.column(other, operation) for other in others}
            row["best peer"], _ = against_best(ours, {rival.name: samples.column(rival, operation) for rival in rivals})
            cells[operation][name(size)], times[operation][name(size)] = row, float(median(ours).value)
    columns = [*(other.name for other in others), "best peer"]
    for operation, rows in cells.items():
        table = Table(f"**`{operation}`**", ["array", "time", *columns])
        for size_name, row in rows.items():
            time_ = f"{times[operation][size_name] * 1e6:,.2f} us"
            table.rows.append([size_name, time_, *(str(median(row[column])) for column in columns)])
        means = [str(geometric_mean([row[column] for row in rows.values()])) for column in columns]
        table.rows.append(["geometric mean", "", *means])
        section.tables.append(table)
        best = {size_name: row["best peer"] for size_name, row in rows.items()}
        section.verdicts.append(judge(f"`{operation}`: at most the best peer's time", 1.0, best))
        beaten = {(rival.name, size_name): row[rival.name] for size_name, row in rows.items() for rival in rivals}
        section.notes += [f"`{operation}`: {loss}" for loss in losses("firsttouch", beaten)]
    section.verdicts.append(judge(f"`a + b`: at most {WARM} times `out=`", WARM, warm))
    section.notes += [*notes, *(f"{absent} is absent on this machine." for absent in preloaded()[1])]
    return section
