"""Creating zeros, and what remains of the speed of lazy ones when they are used.

Mark Kittisopikul's "Faster zeros with calloc" (discourse.julialang.org, topic 69860) compared Julia's `zeros`, which
writes the zeros at once, with `calloc`, which NumPy's `zeros` uses, on 1,024 x 1,024 doubles (8 MiB): 1.652 ms against
12.4 us on Windows, 133 times faster, and 474.5 us against 24.3 us under the Windows Subsystem for Linux, 20 times.
This experiment measures what remains of that when the array is summed and written.

*Fresh*: no array is freed before the next is created, so each is on memory that is new to the process, as in a program
that keeps its arrays. *Recycled*: each is freed before the next, which the C library and pools serve from resident
memory.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

import firsttouch as ft
from _firsttouch_start import units
from firsttouch.tools.bench.common import Cell, Settings, by_size, measured, middle
from firsttouch.tools.measuring.report import Picture, Section, Table
from firsttouch.tools.measuring.rounds import Call
from firsttouch.tools.measuring.sizes import KIB, MIB, name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = np.ndarray[Any, np.dtype[np.float64]]
ARRAYS = 2
FULL, QUICK = (4 * KIB, 64 * KIB, MIB, 8 * MIB, 64 * MIB, 512 * MIB), (4 * KIB, 8 * MIB, 64 * MIB)
ORIGINAL = 8 * MIB
LAZY, EAGER = "np.zeros", "np.empty + fill(0)"
PHASES, REGIMES = ("create", "sum", "write", "total"), ("fresh", "recycled")
KEPT = 256 << 20  # bytes of arrays that are live together, so that each is on new memory
#: From this ratio on creation looks faster; above its highest threshold, glibc's calloc maps every array.
LOOKS, MAPPED = 1.1, 32 * MIB
#: By way and size, medians by "fresh create", "recycled total" and so on.
Found = dict[tuple[str, int], list[dict[str, float]]]


def eager(items: int) -> Array:
    """Create zeros as `zeros` would without support by the C library or the kernel."""
    array = np.empty(items)
    array.fill(0.0)
    return array


#: The ways to create an array of zeros.
MAKERS: dict[str, Callable[[int], Array]] = {
    LAZY: np.zeros,
    EAGER: eager,
    "calloc().zeros": ft.calloc().zeros,
    "pages().zeros": ft.pages().zeros,
    "pool().zeros": ft.pool().zeros,
}


def life(make: Callable[[int], Array], items: int) -> tuple[list[float], Array]:
    """Return the seconds of each phase, and the array, which is still live."""
    clock = time.perf_counter
    start = clock()
    array = make(items)
    created = clock()
    array.sum()
    summed = clock()
    array[:] = 1.0
    written = clock()
    return [created - start, summed - created, written - summed, written - start], array


def measure(maker: str, nbytes: int, seconds: float, most: int) -> dict[str, float]:
    """Measure life after life in one process: `fresh`, freeing none before the next; then `recycled`, freeing each."""
    make, items = MAKERS[maker], nbytes // 8
    lives = [life(make, items) for _ in range(max(1, min(most, KEPT // nbytes)))]
    fresh = [times for times, _ in lives]
    lives.clear()
    life(make, items)  # reuses what the others left
    recycled: list[list[float]] = []
    end = time.perf_counter() + seconds
    while not recycled or (len(recycled) < most and time.perf_counter() < end):
        recycled.append(life(make, items)[0])
    medians = {regime: np.median(rows, axis=0) for regime, rows in zip(REGIMES, (fresh, recycled), strict=True)}
    return {f"{regime} {phase}": float(row[at]) for regime, row in medians.items() for at, phase in enumerate(PHASES)}


def run(settings: Settings) -> Section:
    """Measure every way at every size."""
    section = Section(
        "zeros",
        "Creating zeros, summing and writing them",
        "creating lazy zeros looks a hundred times faster; what remains of that when the memory is used? "
        "Medians over many arrays.",
    )
    wanted, section.notes = settings.chosen(FULL, QUICK, ARRAYS)
    seconds, most = (0.03, 50) if settings.quick else (0.2, 1000)
    cells = {
        (maker, size): Cell(
            Call(__name__, "measure", {"maker": maker, "nbytes": size, "seconds": seconds, "most": most}),
            max(KEPT, ARRAYS * size),
        )
        for maker in MAKERS
        for size in wanted
    }
    found = measured(cells, 1 if settings.quick else 3, settings.progress)
    section.raw = {f"{maker}, {size}": replies for (maker, size), replies in found.items()}
    for size in wanted:
        for regime in REGIMES:
            table = Table(f"**{name(size)}, {regime} memory, medians**", ["way", *PHASES])
            for maker in MAKERS:
                phases = (units.seconds(middle(found[maker, size], f"{regime} {phase}")) for phase in PHASES)
                table.rows.append([maker, *phases])
            section.tables.append(table)
    size = wanted[-1] if settings.sizes else min(wanted, key=lambda size: abs(math.log(size / ORIGINAL)))
    section.notes += [answer(size, found), recycled(size, found)]
    title = "np.zeros compared with np.empty and fill(0): times as fast"
    section.pictures.append(Picture("remains", title, partial(remains, wanted=wanted, found=found)))
    title = f"Where the time goes: {name(size)}, fresh memory, medians"
    section.pictures.append(Picture("phases", title, partial(phases_of, size=size, found=found)))
    return section


def gain(size: int, which: str, found: Found) -> float:
    """Return how many times as fast the lazy way is."""
    return middle(found[EAGER, size], which) / middle(found[LAZY, size], which)


def answer(size: int, found: Found) -> str:
    """Return the conclusion at the original's size."""
    created, used = (gain(size, f"fresh {phase}", found) for phase in ("create", "total"))
    both = f"with {LAZY} as with {EAGER} ({name(size)}, fresh memory)"
    rest = f"Creating, summing and writing is {used:.2f} times as fast"
    if created < LOOKS:
        return f"**Lazy zeros gain nothing here**: creation is {units.times(created)} as fast {both}. {rest}."
    moved = ": the time is spent at the first touch instead" if used < created else ""
    return f"**Creation looks {units.times(created)} as fast** {both}. {rest}{moved}."


def recycled(size: int, found: Found) -> str:
    """Return what changes if memory is recycled by the C library."""
    created, used = (gain(size, f"recycled {phase}", found) for phase in ("create", "total"))
    figures = f"creation is {units.times(created)} as fast at {name(size)} and all three together {used:.2f} times"
    zeroed = "" if size >= MAPPED else "recycled memory has to be written with zeros, and laziness gains nothing. "
    above = "above 32 MiB glibc takes every array from the kernel, and nothing is recycled."
    return f"If each array is freed before the next, {figures}: {zeroed}{above.capitalize() if zeroed else above}"


def remains(axes: Axes, wanted: list[int], found: Found) -> None:
    """Plot the lazy way's gain over the eager one: creation alone, and with the use of the memory."""
    shown = {
        "fresh create": ("creation alone", "tab:red", "-"),
        "fresh total": ("created, summed, written", "tab:green", "-"),
        "recycled create": ("recycled: creation alone", "tab:red", ":"),
        "recycled total": ("recycled: all three", "tab:green", ":"),
    }
    for which, (label, colour, style) in shown.items():
        gains = [gain(size, which, found) for size in wanted]
        axes.plot(wanted, gains, style, color=colour, marker="o", label=label)
    axes.axhline(1.0, color="0.5", linewidth=0.8)
    axes.set(xlabel="array", ylabel="times faster")
    by_size(axes, wanted)


def phases_of(axes: Axes, size: int, found: Found) -> None:
    """Plot a bar for each way, divided into its phases."""
    left = np.zeros(len(MAKERS))
    for phase in PHASES[:-1]:
        width = np.array([middle(found[maker, size], f"fresh {phase}") * 1e3 for maker in MAKERS])
        axes.barh(list(MAKERS), width, left=left, label=phase)
        left += width
    axes.invert_yaxis()
    axes.set(xlabel="milliseconds")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(frameon=False)
