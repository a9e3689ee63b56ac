"""The cost of an empty scope."""

from __future__ import annotations

from firsttouch.tools.measuring.contenders import FIRSTTOUCH, NUMPY
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, collect
from firsttouch.tools.measuring.statistics import median


def run(quick: bool) -> Section:
    """Measure every statement, under NumPy's default and with the pool installed."""
    section = Section(
        "scratch_cost",
        "The cost of an empty scratch scope",
        "no bar; nanoseconds per iteration, the loop included, with NumPy's default and with the pool installed.",
    )
    call = Call("benchmarks.tasks.scratch_cost", "measure", {"turns": 500 if quick else 5000})
    samples = collect([NUMPY, FIRSTTOUCH], call, Plan.steady(quick))
    section.raw = dict(samples.replies)
    table = Table("", ["iteration", "NumPy's default", "pool installed"])
    for name in samples.replies[NUMPY.name][0][0]:
        both = [samples.column(who, name) * 1e9 for who in (NUMPY, FIRSTTOUCH)]
        words = [f"{each.value:,.0f} [{each.low:,.0f}, {each.high:,.0f}]" for each in map(median, both)]
        table.rows.append([name, *words])
    section.tables.append(table)
    return section
