"""Creating zeros, and what remains of the speed of lazy ones when they are used.

Mark Kittisopikul's "Faster zeros with calloc" (discourse.julialang.org, topic 69860) compared Julia's `zeros`, which
writes the zeros at once, with `calloc`, which NumPy's `zeros` uses, on 1,024 x 1,024 doubles (8 MiB): 1.652 ms against
12.4 us on Windows, 133 times faster, and 474.5 us against 24.3 us under the Windows Subsystem for Linux, 20 times.
This experiment measures what remains of that when the array is summed and written.

The life of an array is timed in phases: create, sum, write (every item, or every fifth). *Fresh*: no array is freed
before the next is created, so each is on memory that is new to the process, as in a program that keeps its arrays.
*Recycled*: each is freed before the next, which the C library and pools serve from resident memory.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from _firsttouch_start import units
from firsttouch.tools.bench import shuffled
from firsttouch.tools.bench.drawing import by_size, legend_beside, plain_numbers
from firsttouch.tools.bench.settings import Settings, chosen
from firsttouch.tools.bench.tasks.zeros import KEPT, MAKERS, PHASES, REGIMES
from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.picture import Picture
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call
from firsttouch.tools.measuring.sizes import KIB, MIB, name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Found = dict[tuple[str, int], dict[str, dict[str, Any]]]
COLOURS = {"create": "tab:red", "sum": "tab:blue", "write": "tab:orange", "total": "0.35"}


def remains(axes: Axes, wanted: list[int], found: Found) -> None:
    """Plot the lazy way's gain over the eager one: creation alone, and with the use of the memory."""
    shown = {
        ("fresh 1", "create"): ("creation alone", "tab:red", "-"),
        ("fresh 1", "total"): ("created, summed, written", "tab:green", "-"),
        ("fresh 5", "total"): ("the same, every fifth written", "tab:olive", "-"),
        ("recycled 1", "create"): ("recycled: creation alone", "tab:red", ":"),
        ("recycled 1", "total"): ("recycled: all three", "tab:green", ":"),
    }
    for (which, phase), (label, colour, style) in shown.items():
        eager, lazy = (
            np.array([found[maker, size][which][phase]["median"] for size in wanted])
            for maker in ("np.empty + fill(0)", "np.zeros")
        )
        axes.plot(wanted, eager / lazy, style, color=colour, marker="o", label=label)
    axes.axhline(1.0, color="0.5", linewidth=0.8)
    axes.set(xscale="log", yscale="log", xlabel="array", ylabel="times faster")
    by_size(axes, wanted)
    legend_beside(axes)


def ways(found: Found) -> list[str]:
    """Return the ways in the order of the tables, the first at the top."""
    return [maker for maker in MAKERS if any(maker == one for one, _ in found)]


def phases(axes: Axes, size: int, which: str, found: Found) -> None:
    """Plot a bar for each way, divided into its phases."""
    names = ways(found)
    left = np.zeros(len(names))
    for phase in ("create", "sum", "write"):
        width = np.array([found[maker, size][which][phase]["median"] * 1e3 for maker in names])
        axes.barh(names, width, left=left, color=COLOURS[phase], label=phase)
        left += width
    axes.invert_yaxis()
    axes.set(xlabel="milliseconds")
    axes.grid(axis="x", alpha=0.3)
    legend_beside(axes)


def histograms(axes: Axes, size: int, found: Found) -> None:
    """Plot the distributions of the times of creation alone and of all three phases, a row for each way."""
    names = ways(found)
    samples = {
        (maker, phase): np.array(found[maker, size]["fresh 1"][phase]["samples"]) * 1e3
        for maker in names
        for phase in ("create", "total")
    }
    every = np.concatenate(list(samples.values()))
    bins = np.geomspace(every.min(), every.max() * 1.001, 60)
    for row, maker in enumerate(names):
        for phase in ("create", "total"):
            counts, edges = np.histogram(samples[maker, phase], bins)
            heights = 0.9 * counts / counts.max()
            label = {"create": "creation alone", "total": "created, summed, written"}[phase] if row == 0 else None
            top = row + 0.45 - heights
            axes.stairs(top, edges, baseline=row + 0.45, fill=True, color=COLOURS[phase], label=label)
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="milliseconds; height: share of the arrays")
    plain_numbers(axes.xaxis)
    axes.grid(axis="x", alpha=0.3)
    legend_beside(axes)


ARRAYS = 2
FULL = (4 * KIB, 64 * KIB, MIB, 8 * MIB, 64 * MIB, 512 * MIB)
QUICK = (4 * KIB, 8 * MIB, 64 * MIB)
ORIGINAL = 8 * MIB
LAZY, EAGER = "np.zeros", "np.empty + fill(0)"
#: From this ratio on creation looks faster; above its highest threshold, glibc's calloc maps every array.
LOOKS, MAPPED = 1.1, 32 * MIB
#: By way and size: by "fresh 1" (every item written), "fresh 5", "recycled 1" and "recycled 5": by phase.


def run(settings: Settings) -> Section:
    """Measure every way at every size."""
    section = Section(
        "zeros",
        "Creating zeros, summing and writing them",
        "creating lazy zeros looks a hundred times faster; what remains of that when the memory is used? "
        "Medians over many arrays; *1/5*: only every fifth item is written.",
    )
    wanted, section.notes = chosen(settings, FULL, QUICK, ARRAYS)
    cells = {(maker, size): cell(maker, size, settings.quick) for maker in MAKERS for size in wanted}
    found: Found = {}
    for (maker, size), values in shuffled.by_key(shuffled.run(cells, 1, settings.progress)).items():
        found[maker, size] = section.raw[f"{maker}, {size}"] = values[0]
    detailed = wanted if settings.sizes else [min(wanted, key=lambda size: abs(math.log(size / ORIGINAL)))]
    shown = [] if settings.quick else detailed
    section.tables += [medians(regime, size, found) for size in wanted for regime in REGIMES]
    section.tables += [spread(regime, size, found) for size in shown for regime in REGIMES]
    section.notes += [answer(detailed[-1], found), over_sizes(wanted, found), recycled(detailed[-1], found)]
    section.notes += [quickest(detailed[-1], found)]
    section.pictures += drawn(wanted, detailed[-1], found)
    return section


def cell(maker: str, size: int, quick: bool) -> shuffled.Cell:
    """Return the process for one way and size."""
    arguments = {"maker": maker, "nbytes": size, "seconds": 0.03 if quick else 0.2, "most": 50 if quick else 1000}
    call = Call("firsttouch.tools.bench.tasks.zeros", "measure", arguments)
    return shuffled.Cell(NUMPY, call, max(KEPT, ARRAYS * size))


def medians(regime: str, size: int, found: Found) -> Table:
    """Return the median of each phase, for each way."""
    table = Table(f"**{name(size)}, {regime} memory, medians**", ["way", *PHASES, "write 1/5", "total 1/5"])
    for maker in MAKERS:
        every, fifth = (found[maker, size][f"{regime} {step}"] for step in (1, 5))
        phases = [every[phase] for phase in PHASES] + [fifth[phase] for phase in ("write", "total")]
        table.rows.append([maker, *(units.seconds(phase["median"]) for phase in phases)])
    return table


def spread(regime: str, size: int, found: Found) -> Table:
    """Return how the times are distributed, for each way and phase at one size."""
    columns = ["way", "phase", "minimum", "median", "mean", "deviation", "maximum"]
    table = Table(f"**{name(size)}, {regime} memory, all items written**", columns)
    for maker in MAKERS:
        for phase in PHASES:
            one = found[maker, size][f"{regime} 1"][phase]
            table.rows.append(
                [maker if phase == PHASES[0] else "", phase, *(units.seconds(one[which]) for which in columns[2:])]
            )
    return table


def gain(size: int, which: str, phase: str, found: Found) -> float:
    """Return how many times as fast the lazy way is."""
    eager, lazy = (float(found[maker, size][which][phase]["median"]) for maker in (EAGER, LAZY))
    return eager / lazy


def answer(size: int, found: Found) -> str:
    """Return the conclusion at the original's size."""
    created, used, fifth = (
        gain(size, which, phase, found)
        for which, phase in (("fresh 1", "create"), ("fresh 1", "total"), ("fresh 5", "total"))
    )
    both = f"with {LAZY} as with {EAGER} ({name(size)}, fresh memory)"
    rest = f"Creating, summing and writing is {used:.2f} times as fast, and {fifth:.2f} times if a fifth is"
    if created < LOOKS:
        slow = f"creation is {units.times(created)} as fast {both}"
        return f"**Lazy zeros gain nothing here**: {slow}. {rest} written."
    moved = ": the time is spent at the first touch instead" if used < created else ""
    return f"**Creation looks {units.times(created)} as fast** {both}. {rest} written{moved}."


def over_sizes(wanted: list[int], found: Found) -> str:
    """Return the same over all sizes, from the smallest gain to the largest."""
    words: list[str] = []
    for phase in ("create", "total"):
        gains = sorted(gain(size, "fresh 1", phase, found) for size in wanted)
        words.append(f"{gains[0]:.2g} to {units.times(gains[-1])}" if len(gains) > 1 else units.times(gains[0]))
    return f"Over all sizes: creation {words[0]}, all three together {words[1]}."


def recycled(size: int, found: Found) -> str:
    """Return what changes if memory is recycled by the C library."""
    created, used = (gain(size, "recycled 1", phase, found) for phase in ("create", "total"))
    figures = f"creation is {units.times(created)} as fast at {name(size)} and all three together {used:.2f} times"
    if size >= MAPPED:
        return (
            f"If each array is freed before the next, {figures}: above 32 MiB glibc takes every array from the "
            "kernel, and nothing is recycled."
        )
    return (
        f"If each array is freed before the next, {figures}: recycled memory has to be written with zeros, and "
        "laziness gains nothing. Above 32 MiB glibc takes every array from the kernel, and nothing is "
        "recycled."
    )


def quickest(size: int, found: Found) -> str:
    """Return the fastest way for all three phases; np.empty holds no zeros, and is excluded."""
    words: list[str] = []
    for regime in REGIMES:
        totals = {
            maker: found[maker, size][f"{regime} 1"]["total"]["median"]
            for maker in MAKERS
            if maker not in ("np.empty", "np.ones")
        }
        best = min(totals, key=lambda maker: float(totals[maker]))
        words.append(f"{best} on {regime} memory ({units.seconds(totals[best])})")
    return f"Fastest way to create and use zeros, {name(size)}: {' and '.join(words)}."


def drawn(wanted: list[int], size: int, found: Found) -> list[Picture]:
    """Return the pictures: the gain over the sizes; and at one size, the phases and the distributions."""
    title = "np.zeros compared with np.empty and fill(0): times as fast"
    made = [Picture("remains", title, partial(remains, wanted=wanted, found=found))]
    for regime in REGIMES:
        title = f"Where the time goes: {name(size)}, {regime} memory, medians"
        draw = partial(phases, size=size, which=f"{regime} 1", found=found)
        made.append(Picture(f"phases-{regime}", title, draw))
    title = f"Creation alone and all three phases, every array of {name(size)}, fresh memory"
    made.append(Picture("histograms", title, partial(histograms, size=size, found=found)))
    return made
