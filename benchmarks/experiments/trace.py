"""The cost of recording for the recorded program, and the size of a trace."""

from __future__ import annotations

import importlib
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.kernels import NAMES as KERNELS
from benchmarks.measuring import Plan, collect, judge
from firsttouch import _firsttouch
from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call
from firsttouch.tools.measuring.statistics import Matrix, median

# ---- What is measured, in a process of its own


LENGTHS = {8: 200_000, 1_000: 100_000, 9_000: 30_000, 15_000: 20_000, 100_000: 2_000}
LOOPS = {f"sums of {length:,} numbers": length for length in LENGTHS}
NAMES = (*LOOPS, *KERNELS)


def _loop(length: int) -> float:
    a = np.ones(length)
    start = time.perf_counter()
    for _ in range(LENGTHS[length]):
        a + a
    return time.perf_counter() - start


def _program(name: str) -> float:
    if name in LOOPS:
        return _loop(LOOPS[name])
    kernel = importlib.import_module(f"benchmarks.kernels.{name}")
    start = time.perf_counter()
    kernel.run()
    return time.perf_counter() - start


def measure(name: str, rounds: int) -> dict[str, float]:
    """Return seconds with and without a recorder, alternating in one process; events and bytes of the last trace."""
    times: dict[bool, list[float]] = {True: [], False: []}
    events = size = 0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "t.ft"
        _firsttouch.trace_begin(str(file), [])  # from now on its handler is in place in both cases
        _firsttouch.trace_end()
        _program(name)
        for turn in range(2 * rounds):
            traced = turn % 4 in (0, 3)  # in an order that cancels drift
            if traced:
                _firsttouch.trace_begin(str(file), [])
            times[traced].append(_program(name))
            if traced:
                done = _firsttouch.trace_end()
                assert done is not None
                events, size = done[0], file.stat().st_size
    ratio = float(np.median(np.array(times[True]) / np.array(times[False])))
    plain = float(np.median(times[False]))
    return {"ratio": ratio, "seconds": plain, "events": events, "bytes": size}


# ---- The experiment


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
        call = Call("benchmarks.experiments.trace", "measure", {"name": name, "rounds": 2 if quick else 8})
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
