"""`ft.shared`: passing an array to another process, as it grows."""

from __future__ import annotations

import atexit
import multiprocessing
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from statistics import median as middle

import numpy as np

import firsttouch as ft
from benchmarks.measuring import Plan, collect
from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call
from firsttouch.tools.measuring.sizes import MIB, fitting, name
from firsttouch.tools.measuring.statistics import Estimate, Verdict, median

# ---- What is measured, in a process of its own


#: How the array is created.
WAYS: dict[str, Callable[[int], np.ndarray]] = {
    "shared": lambda nbytes: ft.shared(nbytes, np.uint8),
    "pickled": lambda nbytes: np.empty(nbytes, np.uint8),
}

_partner: list[Connection] = []
_kept: dict[tuple[int, str], np.ndarray] = {}


def serve(connection: Connection) -> None:
    """Be the other process: reply to each array with its residency before anything is touched, and its last byte."""
    while True:
        array, look = connection.recv()
        found = ft.inspect(array) if look else None
        there = (found.cached, found.real) if found else (0, 0)
        connection.send((there, int(array[-1])))
        del array


def _connection() -> Connection:
    if not _partner:
        here, there = multiprocessing.Pipe()
        process = multiprocessing.get_context("spawn").Process(target=serve, args=(there,), daemon=True)
        process.start()
        _partner.append(here)
        atexit.register(process.terminate)
    return _partner[0]


def measure(nbytes: int, way: str) -> dict[str, float]:
    """Return the seconds until the other process's reply to the array arrives, the median of seven, and those without
    an array.
    """
    connection = _connection()
    if (nbytes, way) not in _kept:
        _kept.clear()
        array = WAYS[way](nbytes)
        array[:] = 1
        _kept[nbytes, way] = array
    array = _kept[nbytes, way]
    array[-1] = 7
    connection.send((array, way == "shared"))
    (cached, real), last = connection.recv()
    assert last == 7
    times: dict[int, list[float]] = {nbytes: [], 1: []}
    nothing = np.ones(1, np.uint8)
    for _ in range(7 if way == "shared" else 1):
        for what in (array, nothing):
            start = time.perf_counter()
            connection.send((what, False))
            connection.recv()
            times[what.size].append(time.perf_counter() - start)
    return {"seconds": middle(times[nbytes]), "empty": middle(times[1]), "cached": cached or 0, "real": real or 0}


# ---- The experiment


GIB = 1024 * MIB
SIZES = (MIB, 64 * MIB, GIB)
#: Above this size, a copy through a pipe takes seconds.
LARGEST_PICKLED = 64 * MIB
BAR = 1e-3


def run(quick: bool) -> Section:
    """Measure shared and pickled arrays, through the same pipe, at every size."""
    section = Section(
        "shared",
        "Passing an array to another process",
        "1 GiB is passed in less than a millisecond, and its pages exist only once. Milliseconds from sending an "
        "array through a pipe until the reply arrives, for which the other process reads the last byte; an "
        "array of one byte, pickled as usual, shows the cost of the pipe.",
    )
    sizes, notes = fitting((MIB, 16 * MIB) if quick else SIZES, 3)
    section.notes += notes
    table = Table("", ["array", *map(name, sizes)])
    handed: Estimate | None = None
    for way in WAYS:
        cells = []
        for size in sizes:
            if way == "pickled" and size > LARGEST_PICKLED:
                cells.append("not asked")
                continue
            call = Call("benchmarks.experiments.shared", "measure", {"nbytes": size, "way": way})
            samples = collect([NUMPY], call, Plan.steady(quick))
            section.raw[f"{way} {size}"] = samples.replies
            seconds, empty = (median(samples.column(NUMPY, column)) for column in ("seconds", "empty"))
            cells.append(f"{seconds.value * 1e3:.2f} (one byte: {empty.value * 1e3:.2f})")
            if way == "shared":
                real = float(samples.column(NUMPY, "real").max())
                there = float(samples.column(NUMPY, "cached").min()) / size
                section.notes.append(
                    f"{name(size)}, inspected by the other process before it touches anything: {there:.0%} of the "
                    f"pages are resident, and {real:.0f} bytes of it were touched by that process."
                )
                handed = seconds if size == GIB else handed
        table.rows.append([way, *cells])
    section.tables.append(table)
    bar = "1 GiB passed in less than 1 ms"
    if handed is None:
        section.verdicts.append(Verdict(bar, "1 GiB was not requested, or does not fit", "not measured"))
        return section
    figure = f"{handed.value * 1e3:.2f} ms [{handed.low * 1e3:.2f}, {handed.high * 1e3:.2f}]"
    section.verdicts.append(Verdict(bar, figure, "passed" if handed.high < BAR else "failed"))
    return section
