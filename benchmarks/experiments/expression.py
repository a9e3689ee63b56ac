"""An expression whose temporaries are all of one size, compared with every peer and the best of them."""

from __future__ import annotations

import time
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
from firsttouch.inspection import check_backed
from firsttouch.tools.bench.common import name
from firsttouch.tools.measuring.contenders import FIRSTTOUCH, NUMPY, preloaded
from firsttouch.tools.measuring.processes import Call
from firsttouch.tools.measuring.report import Table

# ---- What is measured, in a process of its own


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


# ---- The experiment


SECONDS = 0.03


def run(quick: bool) -> Section:
    """Measure every contender at every size."""
    contenders, rivals = everyone(), peers()
    section = Section(
        "expression",
        "(a*b+a)/(b+1.0)-a compared with NumPy's default and every peer",
        "better than the best peer in the geometric mean over the sizes, at no size worse beyond the noise. "
        "Cells are firsttouch's time divided by the column's: below 1 firsttouch is faster.",
    )
    others = [NUMPY, AGAIN, *rivals]
    table = Table("", ["array", "time", *(contender.name for contender in others), "best peer", "chosen"])
    cells: dict[str, list[Matrix]] = {contender.name: [] for contender in others}
    best: dict[str, Matrix] = {}
    beaten: dict[tuple[str, str], Matrix] = {}
    sizes, notes = fitting(QUICK if quick else EXPRESSIONS, 5 * len(contenders))
    for size in sizes:
        call = Call("benchmarks.experiments.expression", "measure", {"nbytes": size, "seconds": SECONDS})
        samples = collect(contenders, call, Plan.steady(quick), 5 * size)
        section.raw[str(size)] = samples.replies
        ours = samples.column(FIRSTTOUCH, "seconds")
        times = {rival.name: samples.column(rival, "seconds") for rival in rivals}
        best[name(size)], chosen = against_best(ours, times)
        for contender in others:
            cells[contender.name].append(ours / samples.column(contender, "seconds"))
        beaten.update({(rival, name(size)): ours / seconds for rival, seconds in times.items()})
        row = [str(median(cells[contender.name][-1])) for contender in others]
        words = " and ".join(sorted(set(chosen)))
        time = f"{median(ours).value * 1e6:,.0f} us"
        table.rows.append([name(size), time, *row, str(median(best[name(size)])), words])
    means = [str(geometric_mean(cells[contender.name])) for contender in others]
    table.rows.append(["geometric mean", "", *means, str(geometric_mean(list(best.values()))), ""])
    section.tables.append(table)
    section.verdicts.append(judge("at most the best peer's time", 1.0, best))
    plain = {name(size): cell for size, cell in zip(sizes, cells[NUMPY.name], strict=True)}
    section.verdicts.append(judge("at most the time of NumPy's default", 1.0, plain))
    section.notes += [*notes, *losses("firsttouch", beaten)]
    section.notes += [f"{absent} is absent on this machine." for absent in preloaded()[1]]
    return section
