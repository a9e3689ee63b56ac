"""The cost of each adaptor on top of the pool, for small and large arrays and an expression."""

from __future__ import annotations

from benchmarks.tasks.adaptors import STACKS
from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, collect
from firsttouch.tools.measuring.sizes import KIB, MIB, name
from firsttouch.tools.measuring.statistics import Matrix, judge, median

BAR = 1.03
BASE, TRACKED = "pool()", "tracked(pool())"
CREATED = (64, 64 * KIB, 16 * MIB)
EXPRESSIONS = (64 * KIB, 256 * KIB, MIB, 8 * MIB, 64 * MIB)


def run(quick: bool) -> Section:
    """Measure arrays made by each allocator, then an expression under each."""
    section = Section(
        "adaptors",
        "The cost of adaptors",
        f"`tracked` costs at most {BAR} times the pool alone on an expression with temporaries. Cells are the time "
        "divided by the pool's in the same process.",
    )
    for title, function, sizes in (
        ("An array, created and freed", "create", CREATED[:1] if quick else CREATED),
        ("`(a*b+a)/(b+1.0)-a` under `use`", "expression", EXPRESSIONS[:2] if quick else EXPRESSIONS),
    ):
        cells: dict[str, dict[str, Matrix]] = {stack: {} for stack in STACKS}
        times: list[str] = []
        for size in sizes:
            call = Call("benchmarks.tasks.adaptors", function, {"nbytes": size})
            samples = collect([NUMPY], call, Plan.steady(quick), 8 * size)
            section.raw[f"{function} {size}"] = samples.replies
            base = samples.column(NUMPY, BASE)
            times.append(f"{median(base).value * 1e6:,.2f} us")
            for stack in STACKS:
                cells[stack][name(size)] = samples.column(NUMPY, stack) / base
        table = Table(f"**{title}**", ["allocator", *map(name, sizes)])
        table.rows.append([f"`{BASE}`", *times])
        for stack in list(STACKS)[1:]:
            table.rows.append([f"`{stack}`", *(str(median(cell)) for cell in cells[stack].values())])
        section.tables.append(table)
    section.verdicts.append(judge(f"`{TRACKED}` on the expression: at most {BAR} times the pool", BAR, cells[TRACKED]))
    return section
