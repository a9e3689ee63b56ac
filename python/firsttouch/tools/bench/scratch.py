"""A temporary array on the heap and in scratch memory: the comparison of Bumper.jl.

The README of Bumper.jl (Mason Protter) adds one to 30 integers into a temporary and sums it, in Julia. Medians: 36.6 ns
with the temporary on the heap, 20.8 ns in the task's default buffer, 14.7 ns in a buffer that is passed in; and 9.9 ns,
with 3 integers, in a fixed buffer made by the caller. Nothing there keeps an array from outliving its memory.

Here the same function is measured in NumPy, in Numba and in Rust, with 30 integers and with more. In NumPy and Numba,
arrays that outlive their scope stay valid; in Rust the compiler prevents that. *Kept array* is the lower bound: an
array allocated beforehand.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING

from firsttouch.tools.bench.drawing import bars
from firsttouch.tools.bench.settings import Settings, chosen
from firsttouch.tools.bench.tasks.scratch import LANGUAGES, WAYS
from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.picture import Picture
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Plan, Samples, collect
from firsttouch.tools.measuring.sizes import KIB, MIB, name
from firsttouch.tools.measuring.statistics import Estimate, median

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ORIGINAL = 30  # integers, as in the README
SIZES = (8 * ORIGINAL, 4 * KIB, 64 * KIB, 1 * MIB)
QUICK = (8 * ORIGINAL, 64 * KIB)
ARRAYS = 16
JULIA = {"heap": 36.6, "default buffer": 20.8, "explicit buffer": 14.7}  # ns; on another machine


def run(settings: Settings) -> Section:
    """Measure every way in every language."""
    section = Section(
        "scratch",
        "A temporary array on the heap and in scratch memory",
        "what does `y = x + 1; y.sum()` on int64 cost with `y` on the heap, in the thread's default scratch buffer, in "
        "a buffer that is passed in, in one of fixed size, and in an array allocated beforehand? Times are those of "
        "one iteration, averaged over many; NumPy keeps its default allocator.",
    )
    sizes, notes = chosen(settings, SIZES, QUICK, ARRAYS)
    items = sorted({size // 8 for size in sizes})
    languages = [language for language in LANGUAGES if language != "Numba" or importlib.util.find_spec("numba")]
    samples: dict[str, Samples] = {}
    for number, language in enumerate(languages):
        runs = 5 if settings.quick else 15
        arguments = {"language": language, "sizes": items, "runs": runs, "usual": 0.003}
        call = Call("firsttouch.tools.bench.tasks.scratch", "measure", arguments)
        plan = Plan(1 if language == "Numba" else 2, 2) if settings.quick else Plan(4, 3)
        samples[language] = collect([NUMPY], call, plan, ARRAYS * sizes[-1])
        section.raw[language] = samples[language].replies
        settings.progress((number + 1) / len(languages))
    times(section, samples, items[0])
    for language, each in samples.items():
        against_heap(section, language, each, items)
    if "Numba" not in languages:
        section.notes.append("Numba is not installed: pip install 'firsttouch[numba]' installs it.")
    if "NumPy" in samples and 8 * items[0] < 1 * KIB:
        section.notes.append(
            "NumPy serves arrays under 1 KiB from a cache of its own, even in scopes: for these, a decorated function "
            "in Python only adds the cost of the call."
        )
    section.notes += [
        *notes,
        *(sentence(samples, count) for count in (items if len(items) == 1 else (items[0], items[-1]))),
    ]
    return section


def nanoseconds(samples: Samples, items: int, way: str) -> Estimate:
    """Return the nanoseconds of one iteration."""
    return median(samples.column(NUMPY, f"{items} {way}") * 1e9)


def ratio(samples: Samples, items: int, way: str) -> Estimate:
    """Return a way's time divided by the heap's."""
    return median(samples.column(NUMPY, f"{items} {way}") / samples.column(NUMPY, f"{items} heap"))


def times(section: Section, samples: dict[str, Samples], items: int) -> None:
    """Add the original's table and picture: nanoseconds at the smallest size."""
    table = Table(f"**{items} int64 ({name(8 * items)}), nanoseconds per iteration**", ["language", *WAYS])
    if items == ORIGINAL:
        row = [f"{JULIA[way]:.1f}" if way in JULIA else "" for way in WAYS]
        table.rows.append(["Julia: Bumper.jl's README, another machine", *row])
    found = {way: [nanoseconds(each, items, way) for each in samples.values()] for way in WAYS}
    for number, language in enumerate(samples):
        cells = [found[way][number] for way in WAYS]
        table.rows.append([language, *(f"{cell.value:,.1f} [{cell.low:,.1f}, {cell.high:,.1f}]" for cell in cells)])
    section.tables.append(table)

    def draw(axes: Axes) -> None:
        bars(axes, list(samples), {way: [cell.value for cell in cells] for way, cells in found.items()}, "{:,.0f}")
        axes.set_yscale("log")
        axes.set_ylabel("nanoseconds per iteration (logarithmic)")

    words = f"A temporary of {items} int64, written and summed, by its memory"
    section.pictures.append(Picture("times", words, draw))


def against_heap(section: Section, language: str, samples: Samples, sizes: list[int]) -> None:
    """Add a language's table and picture: ratios to the heap at every size."""
    others = [*WAYS[1:], "heap again"]
    table = Table(f"**{language}: time divided by the heap's**", ["temporary", "heap", *others])
    found = {items: [ratio(samples, items, way) for way in others] for items in sizes}
    for items, cells in found.items():
        time = nanoseconds(samples, items, "heap").value
        table.rows.append([name(8 * items), f"{time:,.1f} ns", *map(str, cells)])
    section.tables.append(table)
    series = {way: [cells[number].value for cells in found.values()] for number, way in enumerate(WAYS[1:])}

    def draw(axes: Axes) -> None:
        bars(axes, [name(8 * items) for items in sizes], series)
        axes.axhline(1, color="black", linewidth=0.8)
        axes.set_ylabel("time / time with the temporary on the heap")

    words = f"{language}: a temporary in scratch memory relative to the heap (below 1 is faster)"
    section.pictures.append(Picture(f"{language.lower()}", words, draw))


def sentence(samples: dict[str, Samples], items: int) -> str:
    """Return what a buffer that is passed in gains."""
    words = [f"{ratio(each, items, 'explicit buffer')} in {language}" for language, each in samples.items()]
    julia = f" (Bumper.jl's README: {JULIA['explicit buffer'] / JULIA['heap']:.2f})" if items == ORIGINAL else ""
    return f"**Time with a passed-in buffer, relative to the heap at {name(8 * items)}**: {', '.join(words)}{julia}."
