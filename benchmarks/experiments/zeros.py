"""`np.zeros`: lazily zeroed if fresh, cheaply zeroed if recycled, sparse if sparsely written."""

from __future__ import annotations

import time
from statistics import median as middle

import numpy as np

from benchmarks.measuring import (
    AGAIN,
    Matrix,
    Plan,
    Section,
    Verdict,
    collect,
    everyone,
    fitting,
    judge,
    losses,
    median,
)
from firsttouch._internal.process_memory import resident
from firsttouch.tools.bench.common import MIB, name
from firsttouch.tools.measuring.contenders import FIRSTTOUCH, NUMPY
from firsttouch.tools.measuring.processes import Call
from firsttouch.tools.measuring.report import Table

# ---- What is measured, in a process of its own


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


# ---- The experiment


ACTIONS = {
    "create": "Create and free",
    "write all": "Create, write all, free",
    "write sparsely": "Create, write one element in each MiB, free",
}
SIZES = tuple(mib * MIB for mib in (1, 4, 16, 64, 256, 1024, 4096))
PEERS_UP_TO = 64 * MIB  # above, four workers that hold gigabytes each would only measure the machine's size
SLACK = MIB  # the difference in resident memory between two equal processes


def run(quick: bool) -> Section:
    """Measure every action at every size."""
    section = Section(
        "zeros",
        "np.zeros from 1 MiB to 4 GiB",
        "none slower than NumPy's, nor with more resident memory while it is live. Cells are firsttouch's time "
        "divided by the column's; resident memory is counted from before the first array.",
    )
    sizes, notes = fitting((MIB, 16 * MIB) if quick else SIZES, 3)
    section.notes += notes
    for action, title in ACTIONS.items():
        contenders = everyone()
        others = [contender for contender in contenders if contender != FIRSTTOUCH]
        columns = ["array", *(contender.name for contender in others), "time", "resident", "NumPy's"]
        table = Table(f"**{title}**", columns)
        cells: dict[str, Matrix] = {}
        beaten: dict[tuple[str, str], Matrix] = {}
        above: list[str] = []
        for size in sizes:
            asked = contenders if size <= PEERS_UP_TO else [NUMPY, FIRSTTOUCH, AGAIN]
            arguments = {"nbytes": size, "action": action, "seconds": 0.01}
            samples = collect(
                asked, Call("benchmarks.experiments.zeros", "measure", arguments), Plan.steady(quick), size
            )
            section.raw[f"{action} {size}"] = samples.replies
            ratios = {who: samples.ratio(FIRSTTOUCH, who, "seconds") for who in samples.replies}
            cells[name(size)] = ratios[NUMPY.name]
            beaten.update({(rival.name, name(size)): ratios[rival.name] for rival in asked[3:]})
            ours = median(samples.column(FIRSTTOUCH, "resident")).value
            plain = median(samples.column(NUMPY, "resident")).value
            if ours > plain + SLACK:
                above.append(f"{name(size)}: {ours / MIB:.1f} against {plain / MIB:.1f} MiB")
            row = [str(median(ratios[other.name])) if other.name in ratios else "" for other in others]
            time = f"{median(samples.column(FIRSTTOUCH, 'seconds')).value * 1e6:,.1f} us"
            table.rows.append([name(size), *row, time, f"{ours / MIB:.1f} MiB", f"{plain / MIB:.1f} MiB"])
        section.tables.append(table)
        section.verdicts.append(judge(f"{title}: not slower than NumPy's", 1.0, cells))
        got = "; ".join(above) or "at no size"
        bar = f"{title}: not more than {SLACK // MIB} MiB above NumPy's resident memory"
        section.verdicts.append(Verdict(bar, got, "failed" if above else "passed"))
        section.notes += [f"{title}: {loss}" for loss in losses("firsttouch", beaten)]
    return section
