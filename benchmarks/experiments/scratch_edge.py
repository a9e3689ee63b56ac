"""A loop at the edge of a chunk, compared with the same loop in its middle."""

from __future__ import annotations

from benchmarks.tasks.scratch_edge import LOOPS
from firsttouch.tools.measuring.contenders import FIRSTTOUCH
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, collect
from firsttouch.tools.measuring.statistics import Matrix, judge, median

BAR = 1.1


def run(quick: bool) -> Section:
    """Measure all loops, in both places."""
    section = Section(
        "scratch_edge",
        "Scratch memory at a chunk's edge",
        f"a loop whose iterations extend into the next chunk costs at most {BAR} times the same in a chunk's middle. "
        "(An arena that frees the next chunk at once would allocate and free one in every iteration.)",
    )
    samples = collect([FIRSTTOUCH], Call("benchmarks.tasks.scratch_edge", "measure"), Plan.steady(quick))
    section.raw = dict(samples.replies)
    table = Table("", ["iteration", "in the middle", "at the edge", "edge / middle", "middle again / middle"])
    cells: dict[str, Matrix] = {}
    for name in LOOPS:
        middle, edge, again = (samples.column(FIRSTTOUCH, f"{name} {word}") for word in ("middle", "edge", "again"))
        cells[name] = edge / middle
        times = [f"{median(column).value * 1e9:,.0f} ns" for column in (middle, edge)]
        table.rows.append([name, *times, str(median(cells[name])), str(median(again / middle))])
    section.tables.append(table)
    section.verdicts.append(judge(f"at most {BAR} times the middle's", BAR, cells))
    return section
