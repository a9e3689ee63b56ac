"""Temporaries from one thread to as many as there are processors: throughput, and what the kernel takes of it.

Memory that an allocator returns to the kernel after each temporary is mapped, faulted in and unmapped again. Page
faults take the lock of the process's memory map for reading, mapping and unmapping take it for writing and interrupt
every processor that runs a thread of the process, so that threads wait for each other however little they share.
Without the GIL nothing else holds them up.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from firsttouch.tools.bench.drawing import plain_numbers
from firsttouch.tools.bench.settings import Settings, chosen
from firsttouch.tools.bench.tasks.scaling import processors
from firsttouch.tools.measuring.contenders import FIRSTTOUCH, NUMPY, TUNED_GLIBC, Contender, preloaded
from firsttouch.tools.measuring.picture import Picture
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, Samples, collect
from firsttouch.tools.measuring.sizes import KIB, MIB, fitting, name
from firsttouch.tools.measuring.statistics import Matrix, geometric_mean, median

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SIZES = (64 * KIB, 256 * KIB, 1 * MIB, 8 * MIB, 64 * MIB)
QUICK = (256 * KIB, 8 * MIB)
ARRAYS = 6  # of a thread: two operands, a result, temporaries
SECONDS = 0.15  # of a measurement, in which each thread evaluates at least once
FEW = 4
"""Processors up to which the kernel's lock is hardly contended."""
Figures = Mapping[int, Samples]


def contenders(settings: Settings) -> tuple[list[Contender], list[str]]:
    """NumPy's default, the pool, tuned glibc, tcmalloc if it is here and whatever is asked for; what is absent."""
    found, absent = preloaded()
    others = [Contender(expression, install=expression) for expression in settings.allocators]
    tcmalloc = [contender for contender in found if contender.name == "tcmalloc"]
    return [NUMPY, FIRSTTOUCH, TUNED_GLIBC, *tcmalloc, *others], [each for each in absent if each == "tcmalloc"]


def counts(cores: int) -> list[int]:
    """1, 2, 4 and so on, up to the number of processors."""
    return sorted({1 << power for power in range(cores.bit_length()) if 1 << power <= cores} | {cores})


def run(settings: Settings) -> Section:
    """Every contender at every size, in one thread and in more."""
    cores = processors()
    threads = counts(cores)
    everyone, absent = contenders(settings)
    section = Section(
        "scaling",
        "Temporaries in more and more threads",
        "how many evaluations of `(a*b + a)/(b + 1.0) - a` do threads get through together, each on arrays of its own? "
        "Cells are evaluations per second of all threads. *Page faults* are those of one evaluation; *in the kernel* "
        "is the share of the processor time spent there. Each number of threads has a process of its own. *firsttouch* "
        "is its pool, installed.",
    )
    section.notes += remarks(cores, absent)
    sizes, notes = chosen(settings, SIZES, QUICK, ARRAYS)
    sizes, more = fitting(sorted({-(-size // 4096) * 4096 for size in sizes}), ARRAYS * cores)
    section.notes += [*notes, *more]
    measured: dict[int, Samples] = {}
    for number, size in enumerate(sizes):
        call = Call(
            "firsttouch.tools.bench.tasks.scaling",
            "measure",
            {"nbytes": size, "threads": threads, "seconds": SECONDS / 3 if settings.quick else SECONDS},
        )
        plan = Plan(2, 2) if settings.quick else Plan(3, 3)
        measured[size] = collect(everyone, call, plan, ARRAYS * cores * size)
        section.raw[str(size)] = measured[size].replies
        settings.progress((number + 1) / len(sizes))
    names = [contender.name for contender in everyone]
    tables(section, names, threads, measured)
    conclude(section, names, threads, measured)
    return section


def remarks(cores: int, absent: Sequence[str]) -> list[str]:
    """What was measured on, and what that cannot show."""
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    said = ["This Python runs without the GIL."]
    if gil:
        said = ["This Python runs with the GIL: threads wait for each other wherever NumPy holds it."]
    if cores == 1:
        said.append("There is one processor: nothing here shows how threads get on beside each other.")
    elif cores <= FEW:
        said.append(
            f"There are {cores} processors: the kernel's lock of the memory map and the interrupts between processors, "
            "which grow with their number, hardly show."
        )
    said.append(
        "How long the kernel holds the lock of the memory map cannot be read without tracing the kernel: the share of "
        "time in the kernel and the number of times that a thread had to wait (`switches` in --json) stand for it."
    )
    if absent:
        said.append("tcmalloc is not installed here.")
    return said


def tables(section: Section, names: Sequence[str], threads: Sequence[int], measured: Figures) -> None:
    """A table of throughput, and one of what it cost."""
    rates = Table("**Evaluations per second**", ["arrays", "threads", *names])
    headings = [f"{who}: {what}" for who in names for what in ("page faults", "in the kernel")]
    costs = Table("**What the kernel took**", ["arrays", "threads", *headings])
    for size, samples in measured.items():
        for count in threads:
            cells = [samples.column(who, f"{count} rate") for who in names]
            rates.rows.append([name(size), str(count), *(f"{median(cell).value:,.1f}" for cell in cells)])
            row = [name(size), str(count)]
            for who in names:
                row.append(f"{median(samples.column(who, f'{count} faults')).value:,.0f}")
                row.append(f"{median(samples.column(who, f'{count} system')).value:.0%}")
            costs.rows.append(row)
    section.tables += [rates, costs]


def conclude(section: Section, names: Sequence[str], threads: Sequence[int], measured: Figures) -> None:
    """A picture, and a sentence on the most threads against NumPy's default in as many, and against one thread."""
    relative: dict[str, list[float]] = {}
    for who in names:
        ratios = [[ratio(samples, who, count, NUMPY.name, 1) for samples in measured.values()] for count in threads]
        relative[who] = [geometric_mean(cells).value for cells in ratios]
    words = "Evaluations per second / those of NumPy's default in one thread (geometric mean over the sizes)"
    section.pictures.append(Picture("threads", words, drawn(relative, threads)))
    most = threads[-1]
    parts: list[str] = []
    for who in names:
        against = geometric_mean([ratio(samples, who, most, NUMPY.name, most) for samples in measured.values()])
        grown = geometric_mean([ratio(samples, who, most, who, 1) for samples in measured.values()])
        parts.append(f"{who} {against} times NumPy's default, and {grown.value:.2f} times itself in one")
    section.notes.append(f"**In {most} thread{'s' if most > 1 else ''}, over all sizes**: {'; '.join(parts)}.")


def ratio(samples: Samples, who: str, count: int, base: str, base_count: int) -> Matrix:
    """Throughput of a contender in some threads against that of another, by rounds."""
    return samples.column(who, f"{count} rate") / samples.column(base, f"{base_count} rate")


def drawn(relative: Mapping[str, Sequence[float]], threads: Sequence[int]) -> Callable[[Axes], None]:
    """Lines over the threads, and one thread's throughput times their number."""

    def draw(axes: Axes) -> None:
        for who, values in relative.items():
            axes.plot(threads, values, marker="o", label=who)
        axes.plot(threads, np.array(threads, float), color="black", linewidth=0.8, linestyle=":", label="threads")
        axes.set_xscale("log", base=2)
        axes.set_yscale("log")
        axes.set_xticks(threads, [str(count) for count in threads])
        axes.set_xticks([], minor=True)
        plain_numbers(axes.yaxis)
        axes.set_xlabel("threads")
        axes.set_ylabel("throughput   (1: NumPy's default in one thread)")
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(frameon=False)

    return draw
