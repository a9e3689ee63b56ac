"""Scratch buffers in code compiled by Numba, compared with a slice of a kept array and NumPy's constructor there."""

from __future__ import annotations

import importlib.util

from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, collect
from firsttouch.tools.measuring.statistics import Verdict, judge, median

SLICE, TIMES, EDGE = 1.5, 5, 1.1
TITLES = {
    "": "`y[:] = x + 1; y.sum()`, 30 int64",
    "loop ": "the same as one loop over the items",
    "only ": "one item written and read",
}


def run(quick: bool) -> Section:
    """Measure everything repeatedly in one process, in several processes."""
    section = Section(
        "scratch_numba",
        "Scratch buffers inside Numba",
        f"`y = scratch; y[:] = x + 1; y.sum()` on 30 int64 at most {SLICE} times the same with a slice of a kept "
        f"array; the allocation at least {TIMES} times faster than `np.empty` there; a loop at the edge of a chunk at "
        f"most {EDGE} times that in its middle.",
    )
    if importlib.util.find_spec("numba") is None:
        section.verdicts.append(Verdict("all", "Numba is not installed", "not measured"))
        return section
    call = Call("benchmarks.tasks.scratch_numba", "measure", {"loops": 20_000 if quick else 200_000})
    samples = collect([NUMPY], call, Plan(2, 2) if quick else Plan(4, 5))
    section.raw["time"] = samples.replies
    column = {key: samples.column(NUMPY, key) for key in samples.replies[NUMPY.name][0][0]}
    table = Table("**Time of an iteration, mark and rewind included**", ["iteration", "slice", "scratch", "np.empty"])
    for prefix, title in TITLES.items():
        names = [f"{prefix}{name}" for name in ("slice", "scratch", "np.empty")]
        table.rows.append([title, *(f"{median(column[name]).value * 1e9:.1f} ns" for name in names)])
    section.tables.append(table)
    again = median(column["slice again"] / column["slice"])
    section.notes.append(f"A/A: the slice again / the slice {again}.")

    bar = f"at most {SLICE} times a slice"
    ratios = {title: column[f"{prefix}scratch"] / column[f"{prefix}slice"] for prefix, title in TITLES.items()}
    ratios.pop(TITLES["only "])
    section.verdicts.append(judge(bar, SLICE, ratios))
    faster = column["only scratch"] / column["only np.empty"]
    section.verdicts.append(judge(f"allocation: at most 1/{TIMES} of np.empty's time", 1 / TIMES, {"30 int64": faster}))
    section.verdicts.append(
        judge(f"edge at most {EDGE} times the middle", EDGE, {"4 KiB": column["edge"] / column["middle"]})
    )

    table = Table("**An array of 30 int64 that leaves its mark, into a list**", ["way", "time"])
    ways = {"keep": "kept where it is", "copy": "copied out", "none": "`np.empty` directly"}
    for key, way in ways.items():
        table.rows.append([way, f"{median(column[key]).value * 1e9:.1f} ns"])
    section.tables.append(table)
    return section
