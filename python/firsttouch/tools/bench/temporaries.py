"""Expressions with temporaries over sizes, threads and allocators.

NumPy's developers have long worked on this. "Large allocations on glibc systems need to be faulted into the process
before each use", wrote Julian Taylor in 2017 (numpy pull request 8783), and proposed to keep freed blocks; it was
closed in 2020 for lack of figures in common cases. What was merged: temporaries are reused in place if that can be
detected (7997, NumPy 1.13), and large arrays request huge pages (11957), which its author measured at 3.74 ms instead
of 5.55 for copying float64 (`bench_io.Copy.time_memcpy_large_out_of_place`), 0.67 of the time.

Here each expression is compared with the same operations into existing arrays (`out=`), in one process for each,
because glibc's behaviour depends on what a process freed before. 1 means that allocation costs nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from firsttouch.tools.bench.settings import Settings, chosen
from firsttouch.tools.bench.tasks.temporaries import EXPRESSIONS
from firsttouch.tools.measuring.contenders import FIRSTTOUCH, NUMPY, TUNED_GLIBC, Contender
from firsttouch.tools.measuring.picture import Picture
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, Samples, collect
from firsttouch.tools.measuring.sizes import KIB, MIB, NoRoomError, fitting, name
from firsttouch.tools.measuring.statistics import Matrix, geometric_mean, median

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZES = (64 * KIB, 256 * KIB, 1 * MIB, 8 * MIB, 64 * MIB, 256 * MIB)
QUICK = (256 * KIB, 8 * MIB)
WINDOWS, SECONDS = (0, 1, 1, 0, 0, 1), 0.003  # plain (0) and into warm memory (1), alternating
LARGE, TOGETHER = 32 * MIB, 64 * MIB  # few rounds from this size on; the largest size with several threads
ARRAYS = 8  # per thread: operands, results and temporaries
Measured = dict[int, Samples]


def contenders(settings: Settings) -> list[Contender]:
    """Return NumPy's default, the pool, tuned glibc, and the requested allocators."""
    others = [Contender(expression, install=expression) for expression in settings.allocators]
    return [NUMPY, FIRSTTOUCH, TUNED_GLIBC, *others]


def asked(settings: Settings, threads: int) -> tuple[list[int], list[str]]:
    """Return the sizes for this number of threads, in whole pages, and a note about those left out."""
    full = [size for size in SIZES if threads == 1 or size <= TOGETHER]
    sizes, notes = chosen(settings, full, QUICK, ARRAYS)
    sizes, more = fitting(sorted({-(-size // 4096) * 4096 for size in sizes}), ARRAYS * threads)
    return sizes, [*notes, *more]


def plan(size: int, quick: bool) -> Plan:
    """Return fewer rounds if one takes seconds."""
    if quick:
        return Plan(2, 2)
    return Plan(2, 1) if size > LARGE else Plan(2, 3)


def same_results(samples: Samples) -> None:
    """Check that the allocators do not change the results."""
    for expression in EXPRESSIONS:
        keys = [f"{expression} {way} result" for way in ("plain", "warm")]
        results = {float(value) for name in samples.replies for key in keys for value in samples.column(name, key).flat}
        if len(results) > 1:
            raise RuntimeError(f"{expression}: the results differ between allocators: {sorted(results)}")


def run(settings: Settings) -> Section:
    """Measure every expression under every allocator at every size, in one thread and in all."""
    cores = len(os.sched_getaffinity(0))
    section = Section(
        "temporaries",
        "Expressions with temporaries",
        "what does an expression cost, compared with the same operations with `out=` on warm memory? Cells are the "
        "time of the plain expression divided by that with `out=`, both in one process, a new one for each expression: "
        "1 means that allocation costs nothing. *Page faults* are those of one evaluation. *firsttouch* is its "
        "installed pool.",
    )
    section.notes.append(
        "With NumPy's default and glibc, the offset of a result in its cache line is random, which alone can double "
        "the time of an addition (`firsttouch bench align`): hence figures below 1, and above 1 without page faults."
    )
    everyone = contenders(settings)
    threads_of = sorted({1, cores})
    for step, threads in enumerate(threads_of):
        title = "In the main thread" if threads == 1 else f"In {threads} threads at once"
        try:
            sizes, notes = asked(settings, threads)
        except NoRoomError as error:
            if threads == 1:
                raise
            section.notes.append(f"{title}: {error}.")
            continue
        measured: Measured = {}
        for number, size in enumerate(sizes):
            arguments = {"nbytes": size, "threads": threads, "windows": WINDOWS, "seconds": SECONDS}
            call = Call("firsttouch.tools.bench.tasks.temporaries", "measure", arguments)
            samples = collect(everyone, call, plan(size, settings.quick), ARRAYS * threads * size)
            same_results(samples)
            measured[size] = samples
            section.raw[f"{threads} {size}"] = samples.replies
            settings.progress((step + (number + 1) / len(sizes)) / len(threads_of))
        report(section, title, everyone, measured)
        section.notes += [f"{title}: {note}" for note in notes]
    return section


def report(section: Section, title: str, everyone: list[Contender], measured: Measured) -> None:
    """Add a table, a picture and a sentence for one number of threads."""
    names = [contender.name for contender in everyone]
    table = Table(f"**{title}**", ["expression", "arrays", "out=", *names, *(f"{name}: page faults" for name in names)])
    cells: dict[str, dict[int, list[Matrix]]] = {name: {size: [] for size in measured} for name in names}
    for expression in EXPRESSIONS:
        for size, samples in measured.items():
            row: list[str] = []
            for who in names:
                ratio = samples.column(who, f"{expression} plain") / samples.column(who, f"{expression} warm")
                cells[who][size].append(ratio)
                row.append(str(median(ratio)))
            faults = [f"{median(samples.column(who, f'{expression} plain faults')).value:,.0f}" for who in names]
            warm = median(samples.column(NUMPY, f"{expression} warm")).value
            table.rows.append([f"`{expression}`", name(size), f"{warm * 1e6:,.1f} us", *row, *faults])
    means = {who: geometric_mean([cell for row in cells[who].values() for cell in row]) for who in names}
    table.rows.append(["geometric mean", "", "", *map(str, means.values()), *[""] * len(names)])
    section.tables.append(table)
    middles = {who: [[float(np.median(cell)) for cell in row] for row in cells[who].values()] for who in names}
    key = "one" if "main" in title else "all"
    words = f"{title}: an expression / the same with out= (mean and range of {len(EXPRESSIONS)} expressions)"
    section.pictures.append(Picture(f"{key}", words, drawn(middles, list(measured))))
    worst = {who: max((max(row), size) for row, size in zip(middles[who], measured, strict=True)) for who in names}
    found = "; ".join(f"{who} {means[who]} (at worst {worst[who][0]:.2f}, {name(worst[who][1])})" for who in names)
    section.notes.append(f"**{title}, over all expressions and sizes**: {found}.")


def drawn(middles: Mapping[str, list[list[float]]], sizes: list[int]) -> Callable[[Axes], None]:
    """Plot lines over the sizes: the geometric mean of the expressions, and their range."""

    def draw(axes: Axes) -> None:
        for who, rows in middles.items():
            line = axes.plot(sizes, [float(np.exp(np.mean(np.log(row)))) for row in rows], marker="o", label=who)
            lows, highs = [min(row) for row in rows], [max(row) for row in rows]
            axes.fill_between(sizes, lows, highs, color=line[0].get_color(), alpha=0.15, linewidth=0)
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        ticks = [tick for tick in (0.5, 0.7, 1, 1.5, 2, 3, 5, 10, 20) if tick <= 1.3 * axes.get_ylim()[1]]
        axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
        axes.set_yticks([], minor=True)
        axes.set_xticks(sizes, [name(size) for size in sizes])
        axes.set_xticks([], minor=True)
        axes.set_xlabel("bytes of each array")
        axes.set_ylabel("time / time with out=   (1: allocation is free)")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)

    return draw
