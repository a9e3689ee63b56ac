"""Loads and stores against alignment and page offset.

Daniel Lemire, "Data alignment for speed: myth or reality?" (lemire.me, 31 May 2012), hashed arrays of integers at every
offset: about 10 % slower on a Core 2, no measurable difference on a Core i7. The comments on that post report 38 % for
a loop over misaligned data on a processor of 2009, and 1 % on one of 2011. Those loops loaded one number at a time. A
load or store as wide as a cache line crosses a line whenever the array does not begin at one, and glibc places a large
array 16 bytes into its page.

The page offset is a separate effect: on some processors, a load that follows a store to the same offset within another
page has to wait ("4K aliasing"). Lemire's "Can 32-byte alignment alleviate 4K aliasing?" (5 January 2018) found 0.543
cycles per number for `a += s * b` if the arrays' page offsets coincide, and 0.707 if they differ by a few bytes, on a
Haswell.

Here NumPy does the work, on float32, in caches and in memory.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firsttouch.tools.bench.drawing import bars
from firsttouch.tools.bench.settings import Settings, chosen
from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.machine import caches, level
from firsttouch.tools.measuring.picture import Picture
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, Samples, collect
from firsttouch.tools.measuring.sizes import KIB, MIB, name
from firsttouch.tools.measuring.statistics import Estimate, median

if TYPE_CHECKING:
    from matplotlib.axes import Axes

At = tuple[int, int, int]  # offsets within a page of the operands and the result


@dataclass(frozen=True)
class Question:
    """Layouts, and the one that they are compared with."""

    title: str
    within: str
    base: str
    layouts: Mapping[str, At]
    operations: tuple[str, ...]
    axis: str

    def of(self, operation: str) -> list[str]:
        """Return the layouts that apply to an operation: a sum has no result, and only one operand."""
        return [layout for layout in self.layouts if operation != "sum" or layout.startswith("all")]


LINE = "all at a line"
QUESTIONS = (
    Question(
        "alignment",
        "cache line",
        LINE,
        {
            LINE: (0, 1024, 2048),
            **{f"all {offset} bytes into a line": (offset, 1024 + offset, 2048 + offset) for offset in (8, 16, 32, 60)},
            "all at the next line": (64, 1024 + 64, 2048 + 64),
            "operands 16 bytes into a line": (16, 1024 + 16, 2048),
            "result 16 bytes into a line": (0, 1024, 2048 + 16),
        },
        ("copy", "add", "sum"),
        "time / time of arrays that begin at a line",
    ),
    Question(
        "page offset",
        "page",
        "result 2048 bytes further",
        {
            "result at the same page offset": (0, 0, 0),
            **{f"result {further} bytes further": (0, 0, further) for further in (64, 256, 1024, 2048)},
        },
        ("copy", "add"),
        "time / time with the result 2048 bytes further",
    ),
)
LAYOUTS = {layout: at for question in QUESTIONS for layout, at in question.layouts.items()}
BEYOND = 128 * MIB  # an array that should exceed all caches, if they are small enough
ARRAYS, LEAST = 4, 1 * KIB
CERTAIN = 1.05
Cells = dict[str, dict[str, Estimate]]  # by layout and size


def sizes(quick: bool) -> list[int]:
    """Return array sizes such that three arrays fit each cache and, in a full run, exceed all of them."""
    known = caches() or {"L1": 32 * KIB, "L2": 512 * KIB, "L3": 16 * MIB}
    inside = {min(known[cache] // (4 if cache == "L1" else 8), 8 * MIB) // 64 * 64 for cache in known}
    return sorted(inside if quick else {*inside, BEYOND})


def measured(size: int, quick: bool) -> Samples:
    """Measure every operation in every layout at one size."""
    turns = max(3, min(15, 256 * MIB // size))
    arguments = {"nbytes": size, "layouts": LAYOUTS, "turns": turns, "usual": 1e-4 if quick else 2e-4}
    plan = Plan(2, 2) if quick or size > 32 * MIB else Plan(4, 3)
    return collect([NUMPY], Call("firsttouch.tools.bench.tasks.align", "measure", arguments), plan, ARRAYS * size)


def drawn(question: Question, operation: str, cells: Cells) -> Picture:
    """Plot bars: a group for each layout, a colour for each size."""
    groups = [layout for layout in question.of(operation) if layout != question.base]
    series = {label: [cells[layout][label].value for layout in groups] for label in cells[question.base]}

    def draw(axes: Axes) -> None:
        bars(axes, [wrapped(layout) for layout in groups], series)
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set_ylabel(question.axis)

    name = f"{operation}-{question.title.replace(' ', '-')}"
    return Picture(
        name,
        f"{operation.capitalize()} of float32 arrays, by their offset in a {question.within} (lower is faster)",
        draw,
    )


def wrapped(words: str) -> str:
    """Wrap a label for the axis."""
    lines = [""]
    for word in words.split():
        lines[-1:] = [f"{lines[-1]} {word}".strip()] if len(lines[-1]) + len(word) < 12 else [lines[-1], word]
    return "\n".join(lines)


def concluded(question: Question, found: Mapping[str, Cells]) -> str:
    """Return which layout costs most, if the difference is certain."""
    every = [
        (cell, operation, layout, label)
        for operation, cells in found.items()
        for layout, row in cells.items()
        for label, cell in row.items()
        if layout != question.base
    ]
    sure = [entry for entry in every if entry[0].low > CERTAIN]
    if not sure:
        return f"**{question.title.capitalize()} makes no difference here**: no cell is certainly slower by 5 %."
    cell, operation, layout, label = max(sure, key=lambda entry: entry[0].low)
    return (
        f"**{question.title.capitalize()} matters here**: `{operation}` takes {cell} times as long with {layout} "
        f"({label}); {len(sure)} of {len(every)} cells are certainly slower by 5 %."
    )


def run(settings: Settings) -> Section:
    """Measure every operation in every layout, by size."""
    section = Section(
        "align",
        "Loads and stores against alignment and page offset",
        "what does it cost if arrays do not begin at a 64-byte cache line, or if their offsets within a page "
        "coincide? Cells are times divided by those of the first row: above 1 is slower. *All at the next line* is "
        "aligned, too, and shows the difference between two equal runs.",
    )
    wanted, notes = chosen(settings, sizes(False), sizes(True), ARRAYS)
    if min(wanted, default=LEAST) < LEAST:
        notes.append(f"Arrays smaller than {name(LEAST)} are measured at that size: their time vanishes beside a call.")
    wanted = sorted({max(LEAST, -(-size // 64) * 64) for size in wanted})  # aligned arrays end at a line, too
    known, samples = caches(), dict[str, Samples]()
    for number, size in enumerate(wanted):
        label = f"{name(size)} ({level(3 * size, known)})"
        samples[label] = measured(size, settings.quick)
        section.raw[str(size)] = samples[label].replies
        settings.progress((number + 1) / len(wanted))
    conclusions: list[str] = []
    for question in QUESTIONS:
        found: dict[str, Cells] = {}
        for operation in question.operations:
            columns = {
                label: {layout: row.column(NUMPY, f"{operation} {layout}") for layout in question.of(operation)}
                for label, row in samples.items()
            }
            table = Table(f"**{operation.capitalize()}: {question.title}**", ["where arrays begin", *samples])
            times = [f"{median(column[question.base]).value * 1e6:,.2f} us" for column in columns.values()]
            table.rows.append([question.base, *times])
            found[operation] = {
                layout: {label: median(column[layout] / column[question.base]) for label, column in columns.items()}
                for layout in question.of(operation)
            }
            for layout, row in found[operation].items():
                if layout != question.base:
                    table.rows.append([layout, *map(str, row.values())])
            section.tables.append(table)
            section.pictures.append(drawn(question, operation, found[operation]))
        conclusions.append(concluded(question, found))
    section.notes += [*notes, *plain_arrays(samples), *conclusions]
    return section


def plain_arrays(samples: Mapping[str, Samples]) -> list[str]:
    """Return where NumPy's own arrays begin."""
    found = {label: sorted(set(row.column(NUMPY, "plain").ravel().astype(int))) for label, row in samples.items()}
    words = ", ".join(f"{' or '.join(map(str, offsets))} ({label})" for label, offsets in found.items())
    return [f"Offsets of NumPy's own arrays in a line, in bytes: {words}. Those of firsttouch's arrays are 0."]
