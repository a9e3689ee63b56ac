"""Dask workers near their memory limit, and one that is killed."""

from __future__ import annotations

import importlib.util

from benchmarks.experiments.dask import DEFAULT, NEAR, PRELOAD
from benchmarks.measuring import Plan, collect, judge
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call
from firsttouch.tools.measuring.sizes import MIB
from firsttouch.tools.measuring.statistics import Matrix, Verdict, median

BAR = 1.15


def run(quick: bool) -> Section:
    """Run each workload on a cluster of its own, with only one cluster at a time."""
    section = Section(
        "dask_memory",
        "Dask: near the memory limit",
        f"a worker with 1 GiB near its limit is never paused or restarted more often than with NumPy's default, peak "
        f"resident memory is at most {BAR} times as much; a killed worker loses no result.",
    )
    if importlib.util.find_spec("distributed") is None:
        section.verdicts.append(Verdict("near the limit", "distributed is not installed", "not measured"))
        return section
    table = Table("", ["workload", "cluster", "peak MiB", "of the limit", "paused", "restarted", "seconds"])
    peaks: dict[str, Matrix] = {}
    more: list[str] = []
    for workload in NEAR:
        call = Call("benchmarks.experiments.dask", "near_limit", {"workload": workload})
        samples = collect((DEFAULT, PRELOAD), call, Plan(1 if quick else 3, 1), 0, alone=True)
        section.raw[workload] = samples.replies
        peaks[workload] = samples.ratio(PRELOAD, DEFAULT, "peak")
        for who in (DEFAULT, PRELOAD):
            peak, seconds = (median(samples.column(who, key)).value for key in ("peak", "seconds"))
            counts = [f"{samples.column(who, key).sum():.0f}" for key in ("paused", "restarted")]
            sizes = f"{peak / MIB:,.0f}", f"{peak / 2**30:.0%}"
            table.rows.append([workload, who.name, *sizes, *counts, f"{seconds:.1f}"])
        for key in ("paused", "restarted"):
            ours, plain = (samples.column(who, key).sum() for who in (PRELOAD, DEFAULT))
            if ours > plain:
                more.append(f"{workload}: {key} {ours:.0f} times, {plain:.0f} with NumPy's default")
    section.tables.append(table)
    section.verdicts.append(judge(f"peak at most {BAR} times NumPy's", BAR, peaks))
    got = "; ".join(more) or "in no workload"
    section.verdicts.append(Verdict("paused or restarted more often", got, "failed" if more else "passed"))
    call = Call("benchmarks.experiments.dask", "killed", {"size": 2000 if quick else 6000})
    reply = collect((PRELOAD,), call, Plan(1, 1), 0, alone=True).replies[PRELOAD.name][0][0]
    outcome = "passed" if reply["got"] == reply["wanted"] else "failed"
    section.verdicts.append(Verdict("a killed worker loses no result", f"a sum of {reply['got']:,.0f}", outcome))
    return section
