"""`a + b` compared with the same addition into warm memory: the cost of allocating the result."""

from __future__ import annotations

import os
from collections.abc import Sequence

from firsttouch.tools.measuring.contenders import AGAIN, FIRSTTOUCH, NUMPY, TUNED_GLIBC, Contender, peers, preloaded
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, Samples, collect
from firsttouch.tools.measuring.sizes import EXPRESSIONS, QUICK, fitting, name
from firsttouch.tools.measuring.statistics import Matrix, judge, losses, median

BAR = 1.05
DASK = {"MALLOC_TRIM_THRESHOLD_": "65536"}


def modes() -> list[tuple[str, str, str, Sequence[Contender], float, int]]:
    """Return title, key, place, contenders, seconds per round, and the number of threads that hold operands."""
    cores = len(os.sched_getaffinity(0))
    ours = (FIRSTTOUCH, AGAIN)
    all_of_them = (*ours, NUMPY, *peers())
    few = (*ours, NUMPY, TUNED_GLIBC)
    dask = [contender.under(DASK) for contender in (*ours, NUMPY)]
    return [
        ("In the main thread", "main", "main", all_of_them, 0.02, 1),
        ("In a second thread", "second", "second", few, 0.02, 1),
        (f"Throughput, {cores} threads on {cores} cores", "throughput", "all", few, 0.15, cores),
        ("With MALLOC_TRIM_THRESHOLD_=65536, main thread", "trim", "main", dask, 0.02, 1),
    ]


def overhead(samples: Samples, contender: Contender) -> Matrix:
    """Return per-round ratios of `a + b` to `out=` inside one process."""
    return samples.column(contender, "add") / samples.column(contender, "out")


def run(quick: bool) -> Section:
    """Measure every mode at every size."""
    section = Section(
        "add",
        "a + b compared with out= on warm memory",
        f"`a + b` on float64, its result freed at once, costs at most {BAR} times "
        "`np.add(a, b, out=warm)`. Cells are that ratio inside one process; operands and `warm` come from "
        "the allocator under test.",
    )
    for title, key, where, contenders, seconds, threads in modes():
        cells: dict[str, Matrix] = {}
        beaten: dict[tuple[str, str], Matrix] = {}
        table = Table(f"**{title}**", ["array", *(contender.name for contender in contenders), "out="])
        sizes, notes = fitting(QUICK if quick else EXPRESSIONS, 4 * threads * len(contenders))
        for size in sizes:
            arguments = {"nbytes": size, "seconds": seconds, "where": where}
            call = Call("benchmarks.tasks.add", "measure", arguments)
            samples = collect(contenders, call, Plan.steady(quick), 4 * threads * size)
            section.raw[f"{key} {size}"] = samples.replies
            cells[name(size)] = overhead(samples, FIRSTTOUCH)
            for peer in contenders[2:]:
                ratios = samples.ratio(FIRSTTOUCH, peer, "add")
                beaten[peer.name, f"{name(size)}, {key}"] = ratios
            row = [str(median(overhead(samples, contender))) for contender in contenders]
            out = float(median(samples.column(FIRSTTOUCH, "out")).value)
            table.rows.append([name(size), *row, f"{out * 1e6:,.1f} us"])
        section.tables.append(table)
        section.verdicts.append(judge(f"{title}: at most {BAR} times `out=`", BAR, cells))
        section.notes += [*notes, *(f"{title}: {loss}" for loss in losses("firsttouch", beaten))]
    section.notes += [f"{absent} is absent on this machine." for absent in preloaded()[1]]
    section.notes.append("Peers are compared by the time of `a + b` itself.")
    return section
