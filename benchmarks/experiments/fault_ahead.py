"""Fresh memory that is written once, with a helper that populates it ahead of the program."""

from __future__ import annotations

from benchmarks.tasks.fault_ahead import OPERATIONS
from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, collect
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
        "pool's time with `fault_ahead=True` divided by its time without.",
    )
    table = Table("", ["operation", "array", "pages", "beside", "without", "time", "processor time", "without again"])
    times: dict[str, dict[str, Matrix]] = {"base": {}, "thp": {}, "busy": {}}
    costs: dict[str, Matrix] = {}
    sizes, notes = fitting((64 * MIB,) if quick else SIZES, 4)
    section.notes += notes
    for size in sizes:
        for operation in OPERATIONS[:1] if quick else OPERATIONS:
            for pages, beside in (("base", False), ("thp", False), ("base", True), ("thp", True)):
                if beside and (operation != "np.ones" or size > SIZES[1]):
                    continue
                arguments = {"nbytes": size, "operation": operation, "huge": pages == "thp", "beside": beside}
                plan = Plan(2, 2) if quick else Plan(3, 5 if size < SIZES[-1] else 3)
                samples = collect([NUMPY], Call("benchmarks.tasks.fault_ahead", "measure", arguments), plan, 2 * size)
                what = f"{operation}, {name(size)}, {pages}{', beside another' if beside else ''}"
                section.raw[what] = samples.replies
                without = samples.column(NUMPY, "without")
                ratio = samples.column(NUMPY, "with") / without
                cost = samples.column(NUMPY, "with, processors") / samples.column(NUMPY, "without, processors")
                times["busy" if beside else pages][what] = ratio
                costs |= {} if beside else {what: cost}
                again = samples.column(NUMPY, "again") / without
                time = f"{median(without).value * 1e3:,.1f} ms"
                cells = [str(median(each)) for each in (ratio, cost, again)]
                table.rows.append([operation, name(size), pages, "another" if beside else "", time, *cells])
    section.tables.append(table)
    for pages, bar in (("thp", HUGE), ("base", BASE)):
        kind = "huge" if pages == "thp" else "base"
        section.verdicts.append(judge(f"{kind} pages: at most 1 / {bar} of the time", 1 / bar, times[pages]))
    section.verdicts.append(judge(f"beside another program: at most 1 / {BUSY} of the time", 1 / BUSY, times["busy"]))
    section.verdicts.append(judge(f"at most {COST} times the processor time", COST, costs))
    return section
