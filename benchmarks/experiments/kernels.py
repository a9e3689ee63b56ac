"""Short numerical programs as a whole: each run is a new process, so that every first touch counts."""

from __future__ import annotations

import importlib
import time

import numpy as np

from benchmarks.kernels import NAMES
from benchmarks.measuring import (
    AGAIN,
    Matrix,
    Plan,
    Samples,
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
from firsttouch._internal.process_memory import peak, reset_peak, resident
from firsttouch.tools.measuring.contenders import FIRSTTOUCH, NUMPY
from firsttouch.tools.measuring.processes import Call
from firsttouch.tools.measuring.report import Table

# ---- What is measured, in a process of its own


def measure(kernel: str) -> dict[str, float]:
    """Return the seconds after the imports, first touch included; the result; and the peak resident memory."""
    run = importlib.import_module(f"benchmarks.kernels.{kernel}").run
    before = resident()
    reset_peak()
    start = time.perf_counter()
    result = run()
    return {"seconds": time.perf_counter() - start, "result": result, "resident": peak() - before}


# ---- The experiment


FOOTPRINT = 128 << 20
PEAK = 1.15


def same_results(samples: Samples, kernel: str) -> None:
    """Check that the allocators do not change the results."""
    results = np.concatenate([samples.column(name, "result").ravel() for name in samples.replies])
    if not np.allclose(results, results[0], rtol=1e-9):
        raise RuntimeError(f"{kernel}: contenders disagree: {sorted(set(results.tolist()))}")


def run(quick: bool) -> Section:
    """Measure every kernel under every contender."""
    contenders, rivals = everyone(), peers()
    section = Section(
        "kernels",
        "Numerical kernels as whole programs",
        "no bar: the gain of unmodified programs, compared with NumPy's default and every peer. Cells are "
        "firsttouch's time after the imports divided by the column's, first touch included.",
    )
    others = [NUMPY, AGAIN, *rivals]
    names = [contender.name for contender in others]
    table = Table("", ["kernel", "NumPy's time", *names, "best peer", "peak memory"])
    cells: dict[str, dict[str, Matrix]] = {contender.name: {} for contender in others}
    best: dict[str, Matrix] = {}
    memory: dict[str, float] = {}
    for kernel in NAMES[:2] if quick else NAMES:
        call = Call("benchmarks.experiments.kernels", "measure", {"kernel": kernel})
        samples = collect(contenders, call, Plan.whole_programs(quick), FOOTPRINT)
        same_results(samples, kernel)
        section.raw[kernel] = samples.replies
        for contender in others:
            cells[contender.name][kernel] = samples.ratio(FIRSTTOUCH, contender, "seconds")
        times = {rival.name: samples.column(rival, "seconds") for rival in rivals}
        best[kernel], _ = against_best(samples.column(FIRSTTOUCH, "seconds"), times)
        row = [str(median(cells[contender.name][kernel])) for contender in others]
        time = f"{median(samples.column(NUMPY, 'seconds')).value * 1e3:,.0f} ms"
        memory[kernel] = median(samples.ratio(FIRSTTOUCH, NUMPY, "resident")).value
        words = f"{memory[kernel]:.2f} of NumPy's"
        table.rows.append([kernel, time, *row, str(median(best[kernel])), words])
    means = [str(geometric_mean(list(cells[contender.name].values()))) for contender in others]
    table.rows.append(["geometric mean", "", *means, str(geometric_mean(list(best.values()))), ""])
    section.tables.append(table)
    section.verdicts.append(judge("at most the time of NumPy's default", 1.0, cells[NUMPY.name]))
    section.verdicts.append(judge("at most the best peer's time", 1.0, best))
    beaten = {(rival.name, kernel): cell for rival in rivals for kernel, cell in cells[rival.name].items()}
    section.notes += losses("firsttouch", beaten)
    above = [f"{kernel} {ratio:.2f}" for kernel, ratio in memory.items() if ratio > PEAK]
    section.notes.append(f"Peak memory above {PEAK} times NumPy's: {', '.join(above) or 'nowhere'}.")
    return section
