"""Classic allocator workloads: memory held compared with memory in use, and the time."""

from __future__ import annotations

from benchmarks.tasks.workloads import WORKLOADS
from firsttouch.tools.measuring.contenders import AGAIN, FIRSTTOUCH, NUMPY, everyone
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, collect
from firsttouch.tools.measuring.sizes import MIB
from firsttouch.tools.measuring.statistics import Matrix, Verdict, judge, losses, median

BAR = 2.0
PART = 0.04  # the part that is timed in rounds; memory is read after the whole


def ask(workload: str, part: float, pooled: bool) -> Call:
    """Return the call for a workload, or a part of it."""
    arguments = {"workload": workload, "part": part, "pooled": pooled}
    return Call("benchmarks.tasks.workloads", "measure", arguments)


def run(quick: bool) -> Section:
    """Run the whole workload for the memory, and a part of it in interleaved rounds for the time."""
    section = Section(
        "workloads",
        "A million allocations, larson, xmalloc, mstress, producer and consumer",
        f"the peak of the memory held stays under {BAR:g} times the peak of the memory in use. Time has no bar: "
        "cells are firsttouch's divided by the column's.",
    )
    contenders = [NUMPY, FIRSTTOUCH, AGAIN] if quick else everyone()
    others = [contender for contender in contenders if contender != FIRSTTOUCH]
    held = Table("**Memory at the peak, MiB**", ["workload", "in use", "held", "ratio", "allocations"])
    timed = Table("**Time**", ["workload", *(contender.name for contender in others), "time"])
    cells: dict[str, Matrix] = {}
    times: dict[str, Matrix] = {}
    beaten: dict[tuple[str, str], Matrix] = {}
    part = PART if quick else 1.0
    for workload, (_, allocations) in WORKLOADS.items():
        whole = ask(workload, part, True)
        memory = collect([FIRSTTOUCH], whole, Plan(2, 1), alone=True)
        use, kept = (memory.column(FIRSTTOUCH, key) for key in ("in use", "held"))
        cells[workload] = kept / use
        row = [f"{median(column).value / MIB:,.1f}" for column in (use, kept)]
        count = f"{int(allocations * part):,}"
        held.rows.append([workload, *row, f"{median(cells[workload]).value:.2f}", count])
        samples = collect(contenders, ask(workload, PART, False), Plan.steady(quick))
        ratios = {other.name: samples.ratio(FIRSTTOUCH, other, "seconds") for other in others}
        times[workload] = ratios[NUMPY.name]
        beaten.update({(rival.name, workload): ratios[rival.name] for rival in others[2:]})
        took = f"{median(samples.column(FIRSTTOUCH, 'seconds')).value * 1e3:,.1f} ms"
        timed.rows.append([workload, *(str(median(ratio)) for ratio in ratios.values()), took])
        section.raw[workload] = {"memory": memory.replies, "time": samples.replies}
    section.tables += [held, timed]
    above = [f"{name} {median(cell).value:.2f}" for name, cell in cells.items() if median(cell).value >= BAR]
    got = ", ".join(above) or f"{max(median(cell).value for cell in cells.values()):.2f} at the most"
    section.verdicts.append(Verdict(f"held under {BAR:g} times in use", got, "failed" if above else "passed"))
    section.verdicts.append(judge("not slower than NumPy's default (no bar asked)", 1.0, times))
    section.notes += losses("firsttouch", beaten) if not quick else []
    return section
