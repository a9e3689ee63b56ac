"""The cost of recording for the recorded program, and the size of a trace."""

from __future__ import annotations

from benchmarks.kernels import NAMES as KERNELS
from benchmarks.tasks.trace import LOOPS, NAMES
from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, collect
from firsttouch.tools.measuring.statistics import Matrix, judge, median

BAR = 1.10


def run(quick: bool) -> Section:
    """Run every program with and without the recorder, alternating in one process; several processes."""
    section = Section(
        "trace",
        "The cost of `firsttouch trace`",
        f"a recorded program takes at most {BAR:g} times as long.",
    )
    table = Table("", ["program", "its time", "recorded", "events", "bytes per event"])
    cells: dict[str, Matrix] = {}
    for name in NAMES[:4] if quick else NAMES:
        call = Call("benchmarks.tasks.trace", "measure", {"name": name, "rounds": 2 if quick else 8})
        samples = collect([NUMPY], call, Plan(1 if quick else 3, 1), 64 << 20)
        cells[name] = samples.column(NUMPY, "ratio")
        events, size = (median(samples.column(NUMPY, key)).value for key in ("events", "bytes"))
        time = f"{median(samples.column(NUMPY, 'seconds')).value * 1e3:,.1f} ms"
        table.rows.append([name, time, str(median(cells[name])), f"{events:,.0f}", f"{size / max(events, 1):.1f}"])
        section.raw[name] = samples.replies
    section.tables.append(table)
    whole = {name: cell for name, cell in cells.items() if name in KERNELS}
    loops = {name: cell for name, cell in cells.items() if name in LOOPS}
    for kind, of_kind in (("whole programs", whole), ("loops that do nothing else", loops)):
        if of_kind:
            section.verdicts.append(judge(f"{kind}: at most {BAR:g} times the time", BAR, of_kind))
    return section
