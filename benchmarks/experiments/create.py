"""The cost of creating arrays: the package's constructors compared with NumPy's."""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from statistics import median as middle
from typing import Any

import numpy as np

import firsttouch as ft
from benchmarks.measuring import Matrix, Plan, Section, Verdict, collect, judge, median
from firsttouch.tools.bench.common import KIB, MIB, name
from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.processes import Call
from firsttouch.tools.measuring.report import Table

# ---- What is measured, in a process of its own


TURNS = 20
_pool = ft.pool()

STATEMENTS: dict[str, tuple[str, ...]] = {
    what: (f"np.{what}(n, t)", f"ft.{what}(n, t)", f"ft.{what}(n, t, allocator=pool)", f"pool.{what}(n, t)")
    for what in ("empty", "zeros")
}


def measure(nbytes: int, what: str) -> dict[str, float]:
    """Return the seconds to create and free an array of this size, each way."""
    names = {"np": np, "ft": ft, "pool": _pool, "n": nbytes, "t": np.uint8}
    timers = {statement: timeit.Timer(statement, globals=names) for statement in STATEMENTS[what]}
    loops = max(2, min(2000, (1 << 24) // nbytes))
    times: dict[str, list[float]] = {}
    for turn in range(TURNS):
        for statement, timer in timers.items() if turn % 2 else reversed(timers.items()):
            timer.timeit(1)
            times.setdefault(statement, []).append(timer.timeit(loops) / loops)
    return {statement: middle(row) for statement, row in times.items()}


SOURCES: dict[str, Callable[[], Any]] = {
    "pool()": ft.pool,
    "pages()": ft.pages,
    'pages(huge="thp")': lambda: ft.pages(huge="thp"),
    "aligned(64)": lambda: ft.aligned(64),
    "calloc()": ft.calloc,
}
SHAPES: dict[str, tuple[int, ...]] = {"64 x 64 x 256": (64, 64, 256), "1024 x 1024 x 256": (1024, 1024, 256)}


def untouched(shape: str) -> dict[str, float]:
    """Return the seconds for zeros of float64 from each source, and from NumPy."""
    times: dict[str, float] = {}
    for title, source in {"NumPy": None, **SOURCES}.items():
        make = np.zeros if source is None else source().zeros
        make(SHAPES[shape])
        each: list[float] = []
        for _ in range(TURNS):
            start = time.perf_counter()
            array = make(SHAPES[shape])
            each.append(time.perf_counter() - start)
            del array
        times[title] = middle(each)
    return times


# ---- The experiment


SMALL = (1, 8, 64, 512, KIB, 4 * KIB, 16 * KIB)
LARGE = (64 * KIB, 256 * KIB, MIB, 16 * MIB, 256 * MIB, 1024 * MIB)
BAR = 1.10
LAZY = 100e-6  # stands for "microseconds, whatever the size"


def run(quick: bool) -> Section:
    """Measure sizes from a byte to a gibibyte; then two very different sizes of lazily zeroed arrays."""
    section = Section(
        "create",
        "Making arrays",
        f"`ft.empty` and `ft.zeros` cost at most {BAR} times NumPy's for small arrays, and no more above 64 KiB; zeros "
        "of 1024 x 1024 x 256 float64 in microseconds. Nothing is installed; `allocator=` and the method use a pool. "
        "Cells are the time divided by NumPy's in the same process; the array is freed at once.",
    )
    small, large = ((8, 4 * KIB), (MIB,)) if quick else (SMALL, LARGE)
    for what, (plain, *others) in STATEMENTS.items():
        table = Table(f"**{what}**", ["bytes", f"`{plain}`", *(f"`{other}`" for other in others)])
        cells: dict[str, dict[int, Matrix]] = {other: {} for other in others}
        for size in (*small, *large):
            call = Call("benchmarks.experiments.create", "measure", {"nbytes": size, "what": what})
            samples = collect([NUMPY], call, Plan.steady(quick), 0)
            section.raw[f"{what} {size}"] = samples.replies
            base = samples.column(NUMPY, plain)
            for other in others:
                cells[other][size] = samples.column(NUMPY, other) / base
            ratios = [str(median(cells[other][size])) for other in others]
            table.rows.append([name(size), f"{median(base).value * 1e9:,.0f} ns", *ratios])
        section.tables.append(table)
        for other in others:
            for words, sizes, bar in (("small arrays", small, BAR), ("from 64 KiB", large, 1.0)):
                got = {name(size): cells[other][size] for size in sizes}
                section.verdicts.append(judge(f"`{other}`, {words}: at most {bar} times NumPy's", bar, got))
    lazily(section, quick)
    return section


def lazily(section: Section, quick: bool) -> None:
    """Measure zeros that are never touched."""
    columns = ["shape"]
    table = Table("**zeros of float64, not touched, microseconds**", columns)
    for shape in SHAPES:
        samples = collect(
            [NUMPY], Call("benchmarks.experiments.create", "untouched", {"shape": shape}), Plan.steady(quick), 0
        )
        section.raw[f"lazily {shape}"] = samples.replies
        names = list(samples.replies[NUMPY.name][0][0])
        columns[1:] = names
        medians = {each: median(samples.column(NUMPY, each)).value for each in names}
        table.rows.append([shape, *(f"{value * 1e6:,.1f}" for value in medians.values())])
    section.tables.append(table)
    worst = max(value for each, value in medians.items() if each != NUMPY.name)
    outcome = "passed" if worst <= LAZY else "failed"
    section.verdicts.append(Verdict("zeros of 2 GiB in microseconds", f"{worst * 1e6:,.1f} us at the most", outcome))
