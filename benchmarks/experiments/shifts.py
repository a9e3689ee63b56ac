"""Copies and differences that are shifted by an element: where arrays lie in their pages decides how fast they are."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median as middle
from typing import Any

import numpy as np

from benchmarks.measuring import (
    AGAIN,
    QUICK,
    Matrix,
    Plan,
    Section,
    against_best,
    collect,
    everyone,
    geometric_mean,
    judge,
    losses,
    median,
    peers,
)
from firsttouch.inspection import check_backed
from firsttouch.tools.bench.common import KIB, MIB, name
from firsttouch.tools.measuring.contenders import FIRSTTOUCH, NUMPY
from firsttouch.tools.measuring.processes import Call
from firsttouch.tools.measuring.report import Table

# ---- What is measured, in a process of its own


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


# ---- The experiment


SECONDS = 0.01
#: Multiples of a row of 512 float64; the first ones are whole numbers of pages.
SIZES = (64 * KIB, 512 * KIB, 2 * MIB, 500 * KIB, 1020 * KIB, 8 * MIB)


def run(quick: bool) -> Section:
    """Measure every operation at every size under every contender."""
    contenders, rivals = everyone(), peers()
    section = Section(
        "shifts",
        "Arrays that are shifted by an element",
        "at most the time of NumPy's default and of the best peer in the geometric mean. Cells are firsttouch's time "
        "divided by the column's.",
    )
    others = [NUMPY, AGAIN, *rivals]
    table = Table("", ["operation", "array", "time", *(contender.name for contender in others), "best peer"])
    cells: dict[str, dict[str, Matrix]] = {contender.name: {} for contender in others}
    best: dict[str, Matrix] = {}
    for operation in OPERATIONS:
        for size in QUICK if quick else SIZES:
            call = Call(
                "benchmarks.experiments.shifts", "measure", {"nbytes": size, "operation": operation, "seconds": SECONDS}
            )
            samples = collect(contenders, call, Plan.steady(quick), 4 * size)
            what = f"{operation}, {name(size)}"
            section.raw[what] = samples.replies
            ours = samples.column(FIRSTTOUCH, "seconds")
            for contender in others:
                cells[contender.name][what] = ours / samples.column(contender, "seconds")
            best[what], _ = against_best(ours, {rival.name: samples.column(rival, "seconds") for rival in rivals})
            row = [str(median(cells[contender.name][what])) for contender in others]
            time = f"{median(ours).value * 1e6:,.0f} us"
            table.rows.append([operation, name(size), time, *row, str(median(best[what]))])
    means = [str(geometric_mean(list(cells[contender.name].values()))) for contender in others]
    table.rows.append(["geometric mean", "", "", *means, str(geometric_mean(list(best.values())))])
    section.tables.append(table)
    section.verdicts.append(judge("at most the time of NumPy's default", 1.0, cells[NUMPY.name]))
    section.verdicts.append(judge("at most the best peer's time", 1.0, best))
    beaten = {(rival.name, what): cell for rival in rivals for what, cell in cells[rival.name].items()}
    section.notes += losses("firsttouch", beaten)
    return section
