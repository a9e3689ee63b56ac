"""A real filter: written plainly, in scratch memory, and with buffers kept by hand."""

from __future__ import annotations

from firsttouch.tools.measuring.contenders import FIRSTTOUCH, NUMPY
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, collect
from firsttouch.tools.measuring.sizes import name
from firsttouch.tools.measuring.statistics import Matrix, judge, median

SIZES = (64, 128, 256, 512)
USUAL = 256  # the example's default
BAR = 1.1
SCRATCH, AGAIN, PLAIN, KEPT = "in scratch memory", "in scratch again", "plainly", "kept by hand"


def run(quick: bool) -> Section:
    """Measure all ways at every size, with NumPy's default; with the pool for comparison."""
    section = Section(
        "scratch_filter",
        "A filter plainly, in scratch memory, and with buffers kept by hand",
        f"Richardson and Lucy's deconvolution (`examples/richardson_lucy.py`) in scratch memory takes at most {BAR} "
        "times what it takes with buffers kept by hand and `out=` everywhere. NumPy has its default allocator; "
        "cells are scratch memory's time divided by the column's.",
    )
    columns = ["image", "its arrays", "scratch", "plainly", "kept by hand", "scratch again"]
    columns += ["plainly, pool installed", "by hand, pool installed"]
    table = Table("", columns)
    cells: dict[str, Matrix] = {}
    for size in (64, USUAL) if quick else SIZES:
        call = Call("benchmarks.tasks.scratch_filter", "measure", {"size": size, "seconds": 0.05})
        samples = collect([NUMPY, FIRSTTOUCH], call, Plan.steady(quick), 40 * size * size)
        section.raw[str(size)] = samples.replies
        ours = samples.column(NUMPY, SCRATCH)
        cells[f"{size}"] = ours / samples.column(NUMPY, KEPT)
        row = [str(median(ours / samples.column(NUMPY, other))) for other in (PLAIN, KEPT, AGAIN)]
        row += [str(median(ours / samples.column(FIRSTTOUCH, other))) for other in (PLAIN, KEPT)]
        time = f"{median(ours).value * 1e6:,.0f} us"
        table.rows.append([f"{size} x {size}", name(8 * size * size), time, *row])
    section.tables.append(table)
    usual = {f"{USUAL}": cells[f"{USUAL}"]}
    section.verdicts.append(judge(f"{USUAL} x {USUAL}: at most {BAR} times the time by hand", BAR, usual))
    section.verdicts.append(judge(f"at every size: at most {BAR} times the time by hand", BAR, cells))
    return section
