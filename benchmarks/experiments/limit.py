"""The size from which on the pool should serve: the same sizes pooled and forwarded in one process."""

from __future__ import annotations

from benchmarks.tasks.limit import hook
from firsttouch import stats
from firsttouch.tools.measuring.contenders import FIRSTTOUCH
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, collect
from firsttouch.tools.measuring.sizes import KIB, name
from firsttouch.tools.measuring.statistics import Estimate, Verdict, median

SIZES = tuple(size * KIB for size in (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256))
STATEMENTS = {"empty": "np.empty", "expression": "(a*b+a)/(b+1.0)-a"}


def run(quick: bool) -> Section:
    """Sweep the sizes around the limit."""
    section = Section(
        "limit",
        "The size from which on the pool serves",
        "the limit below which requests go to NumPy's own allocator is chosen by measurement. Cells are the "
        "pool's time divided by the forwarded one's in the same process: below 1 the pool is faster.",
    )
    if hook() is None:
        section.verdicts.append(Verdict("the sweep", "this build cannot change the limit", "not measured"))
        return section
    ratios = [f"`{code}`" for code in STATEMENTS.values()]
    table = Table("", ["size", *ratios, *(f"{key}, pooled" for key in STATEMENTS)])
    found: dict[str, dict[int, Estimate]] = {key: {} for key in STATEMENTS}
    for size in (4 * KIB, 64 * KIB) if quick else SIZES:
        call = Call("benchmarks.tasks.limit", "measure", {"nbytes": size})
        samples = collect([FIRSTTOUCH], call, Plan.steady(quick), 8 * size)
        section.raw[str(size)] = samples.replies
        times: list[str] = []
        for key in STATEMENTS:
            pooled = samples.column(FIRSTTOUCH, f"{key} pooled")
            forwarded = samples.column(FIRSTTOUCH, f"{key} forwarded")
            found[key][size] = median(pooled / forwarded)
            times.append(f"{median(pooled).value * 1e9:,.0f} ns")
        table.rows.append([name(size), *(str(found[key][size]) for key in STATEMENTS), *times])
    section.tables.append(table)
    for key, code in STATEMENTS.items():
        slower = [size for size, estimate in found[key].items() if estimate.low > 1.0]
        words = f"at {', '.join(map(name, slower))}" if slower else "nowhere"
        section.notes.append(f"`{code}` is slower from the pool {words}.")
    section.notes.append(f"This build forwards requests below {name(stats().small_limit)}.")
    return section
