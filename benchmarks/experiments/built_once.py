"""Whole programs that build large data once, with a helper that populates their memory ahead of them."""

from __future__ import annotations

from benchmarks.experiments.kernels import same_results
from benchmarks.programs import BUILT_ONCE
from firsttouch.tools.measuring.contenders import AGAIN, FIRSTTOUCH, NUMPY, Contender
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, collect
from firsttouch.tools.measuring.statistics import Matrix, judge, median

AHEAD = Contender("fault-ahead", install="pool(fault_ahead=True)")
FOOTPRINT = 768 << 20
FASTER, COST = 1.15, 1.1


def run(quick: bool) -> Section:
    """Measure every program on a pool with and without fault-ahead, and on NumPy's default."""
    section = Section(
        "built_once",
        "Whole programs that build large data once",
        f"with `fault_ahead=True` at least {FASTER} times as fast as without in the geometric mean, for at most {COST} "
        "times the processor time. Cells are the pool's time with fault-ahead divided by the column's.",
    )
    others = [FIRSTTOUCH, AGAIN, NUMPY]
    names = ["program", "without", "time", "without again", "NumPy", "processor time", "kernel's part, without"]
    table = Table("", names)
    times: dict[str, Matrix] = {}
    costs: dict[str, Matrix] = {}
    for program in BUILT_ONCE[:1] if quick else BUILT_ONCE:
        call = Call("benchmarks.tasks.whole", "measure", {"program": program})
        samples = collect([AHEAD, *others], call, Plan(2 if quick else 7, 1), FOOTPRINT)
        same_results(samples, program)
        section.raw[program] = samples.replies
        times[program] = samples.ratio(AHEAD, FIRSTTOUCH, "seconds")
        used, plainly = (samples.column(who, "user") + samples.column(who, "system") for who in (AHEAD, FIRSTTOUCH))
        costs[program] = used / plainly
        again = samples.column(AGAIN, "seconds") / samples.column(FIRSTTOUCH, "seconds")
        cells = [times[program], again, samples.ratio(AHEAD, NUMPY, "seconds"), costs[program]]
        kernel = median(samples.column(FIRSTTOUCH, "system") / plainly).value
        seconds = median(samples.column(FIRSTTOUCH, "seconds")).value
        table.rows.append([program, f"{seconds:.2f} s", *(str(median(cell)) for cell in cells), f"{kernel:.0%}"])
    section.tables.append(table)
    section.verdicts.append(judge(f"at most 1 / {FASTER} of the time", 1 / FASTER, times))
    section.verdicts.append(judge(f"at most {COST} times the processor time", COST, costs))
    return section
