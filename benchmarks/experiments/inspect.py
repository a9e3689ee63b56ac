"""`ft.inspect`: the cost of inspecting an array's pages, as the array grows."""

from __future__ import annotations

import time
from collections.abc import Callable
from statistics import median as middle

import numpy as np

import firsttouch as ft
from benchmarks.measuring import Plan, collect
from firsttouch import _firsttouch
from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call
from firsttouch.tools.measuring.sizes import MIB, fitting, name
from firsttouch.tools.measuring.statistics import Estimate, Verdict, median

# ---- What is measured, in a process of its own


PAGE = 4096


#: Where the pages come from, and the distance of those that are written; 0 for none.
STATES: dict[str, tuple[Callable[[], ft.Allocator], int]] = {
    "absent": (ft.pages, 0),
    "small pages": (ft.pages, PAGE),
    "huge pages": (lambda: ft.pages("thp"), PAGE),
    "every other page": (ft.pages, 2 * PAGE),
}
#: The features that a kernel may lack, by name.
WITHOUT: dict[str, list[str]] = {
    "": [],
    "nodes by move_pages": ["only_node"],
    "no PAGEMAP_SCAN": ["scan_pages"],
}

_kept: dict[tuple[int, str], np.ndarray] = {}


def measure(nbytes: int, state: str, without: str) -> dict[str, float]:
    """Return the seconds of one inspection, the median of five; the array is created once."""
    if (nbytes, state) not in _kept:
        _kept.clear()
        source, step = STATES[state]
        array = source().zeros(nbytes, np.uint8)
        if step:
            array[::step] = 1
        _kept[nbytes, state] = array
    array = _kept[nbytes, state]
    times = []
    _firsttouch.fail_calls(WITHOUT[without])
    try:
        for _ in range(5):
            start = time.perf_counter()
            found = ft.inspect(array)
            times.append(time.perf_counter() - start)
    finally:
        _firsttouch.fail_calls([])
    return {"seconds": middle(times), "pages": found.pages}


# ---- The experiment


GIB = 1024 * MIB
SIZES = (MIB, 64 * MIB, GIB, 4 * GIB)
BAR = 50e-3


def run(quick: bool) -> Section:
    """Measure every state at every size; then without features that kernels may lack."""
    section = Section(
        "inspect",
        "ft.inspect from 1 MiB to 4 GiB",
        "inspecting 1 GiB takes less than 50 ms, whatever its pages are. Cells are milliseconds, followed by "
        "nanoseconds per page of 4 KiB. The last rows show other machines: several nodes, an older kernel.",
    )
    sizes, notes = fitting((MIB, 16 * MIB) if quick else SIZES, 1)
    section.notes += notes
    table = Table("", ["pages", *map(name, sizes)])
    slowest: list[tuple[Estimate, str]] = []
    for without in WITHOUT:
        for state in STATES if not without else ["small pages"]:
            label = f"{state}, {without}" if without else state
            cells = []
            for size in sizes:
                arguments = {"nbytes": size, "state": state, "without": without}
                call = Call("benchmarks.experiments.inspect", "measure", arguments)
                samples = collect([NUMPY], call, Plan.steady(quick))
                section.raw[f"{state} {without} {size}"] = samples.replies
                seconds = median(samples.column(NUMPY, "seconds"))
                each = median(samples.column(NUMPY, "seconds") / samples.column(NUMPY, "pages")).value
                cells.append(f"{seconds.value * 1e3:.2f}, {each * 1e9:.1f}")
                if size == GIB and without in ("", "nodes by move_pages"):
                    slowest.append((seconds, label))
            table.rows.append([label, *cells])
    section.tables.append(table)
    found = max(slowest, key=lambda each: each[0].high, default=None)
    bar = "ft.inspect of 1 GiB in less than 50 ms, also on several nodes"
    if found is None:
        section.verdicts.append(Verdict(bar, "1 GiB was not requested, or does not fit", "not measured"))
        return section
    worst, state = found
    figure = f"{worst.value * 1e3:.1f} ms [{worst.low * 1e3:.1f}, {worst.high * 1e3:.1f}] at the most: {state}"
    section.verdicts.append(Verdict(bar, figure, "passed" if worst.high < BAR else "failed"))
    return section
