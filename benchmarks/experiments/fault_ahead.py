"""Fresh memory that is written once, with a helper that populates it ahead of the program."""

from __future__ import annotations

import numpy as np

from benchmarks.tasks.fault_ahead import OPERATIONS
from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, Samples, collect
from firsttouch.tools.measuring.sizes import MIB, fitting, name
from firsttouch.tools.measuring.statistics import Matrix, judge, median

SIZES = (64 * MIB, 256 * MIB, 1024 * MIB)
BASE, HUGE, BUSY, COST = 1.4, 1.5, 0.98, 1.1


def run(quick: bool) -> Section:
    """Measure every operation at every size, on base and on huge pages, alone and beside another such program."""
    section = Section(
        "fault_ahead",
        "Fresh memory written once, populated ahead",
        f"at least {HUGE} times as fast on huge pages and {BASE} times on base pages, for at most {COST} times the "
        f"processor time; never below {BUSY} where another such program keeps the other processor busy. Cells are the "
        "pool's time with `fault_ahead=True` divided by its time without, the mean of two runs.",
    )
    table = Table("", ["operation", "array", "pages", "beside", "without", "time", "processor time", "without again"])
    times: dict[str, dict[str, Matrix]] = {"base": {}, "thp": {}, "busy": {}}
    costs: dict[str, dict[str, Matrix]] = {"base": {}, "thp": {}}
    sizes, notes = fitting((64 * MIB,) if quick else SIZES, 4)
    section.notes += notes
    for size in sizes:
        for operation in OPERATIONS[:1] if quick else OPERATIONS:
            for pages, beside in (("base", False), ("thp", False), ("base", True), ("thp", True)):
                if beside and (operation != "np.ones" or size > SIZES[1]):
                    continue
                arguments = {"nbytes": size, "operation": operation, "huge": pages == "thp", "beside": beside}
                plan = Plan(2, 2) if quick else Plan(3 if size < SIZES[-1] else 2, 6)
                samples = collect([NUMPY], Call("benchmarks.tasks.fault_ahead", "measure", arguments), plan, 2 * size)
                what = f"{operation}, {name(size)}, {pages}{', beside another' if beside else ''}"
                section.raw[what] = samples.replies
                ratio, again = _ratios(samples)
                cost, _ = _ratios(samples, ", processors")
                times["busy" if beside else pages][what] = ratio
                if not beside:
                    costs[pages][what] = cost
                time = f"{median(samples.column(NUMPY, 'without')).value * 1e3:,.1f} ms"
                cells = [str(median(each)) for each in (ratio, cost, again)]
                table.rows.append([operation, name(size), pages, "another" if beside else "", time, *cells])
    section.tables.append(table)
    for pages, kind, bar in (("thp", "huge", HUGE), ("base", "base", BASE)):
        section.verdicts.append(judge(f"{kind} pages: at most 1 / {bar} of the time", 1 / bar, times[pages]))
        section.verdicts.append(judge(f"{kind} pages: at most {COST} times the processor time", COST, costs[pages]))
    section.verdicts.append(judge(f"beside another program: at most 1 / {BUSY} of the time", 1 / BUSY, times["busy"]))
    return section


def _ratios(samples: Samples, figure: str = "") -> tuple[Matrix, Matrix]:
    """Return a figure with help by its mean without, and the second of the two without by the first."""
    helped, without, again = (samples.column(NUMPY, who + figure) for who in ("with", "without", "again"))
    return helped / np.sqrt(without * again), again / without
