"""`a = b + c * d` on arrays that were never written: a bandwidth test of a single page.

Georg Hager described it in "Benchmarking fun with calloc() and zero pages" (Georg Hager's Blog, 2007): students ran the
vector triad in C on arrays from `calloc`. Just below 200 MFlop/s was to be expected on the machine; they measured 1.4
GFlop/s, seven times as much, until a loop wrote the same zeros into the arrays first. Pages that were only read are all
the kernel's single zero page, which stays in the cache.

Here the triad goes through the arrays in blocks of 128 KiB, whose product stays in the cache: b, c and d are read once
and a is written once, as by the loop in C. NumPy's `a = b + c * d` as a whole would also write and read a temporary
array, which would hide part of the effect.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from _firsttouch_start import units
from firsttouch.tools.bench import in_cpp, shuffled
from firsttouch.tools.bench.drawing import by_size, legend_beside
from firsttouch.tools.bench.settings import KINDS, Settings, chosen
from firsttouch.tools.bench.tasks.triad import STATES
from firsttouch.tools.measuring.contenders import Contender
from firsttouch.tools.measuring.machine import caches
from firsttouch.tools.measuring.picture import Picture
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call
from firsttouch.tools.measuring.sizes import MIB, name
from firsttouch.tools.measuring.statistics import Matrix, Verdict, geometric_mean

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ARRAYS = 5  # resident ones: four written arrays, and the one that the never written arrays are added into
FULL = tuple(mib * MIB for mib in (1, 8, 64, 256, 512))
QUICK = (MIB, 64 * MIB, 256 * MIB)
#: The gain of never written arrays from which on the trap deserves a warning.
BAR = 2.0
# Every array comes from the kernel, even small ones.
FRESH = Contender("fresh", {"MALLOC_MMAP_THRESHOLD_": str(128 << 10)})
Key = tuple[str, int, bool]
Values = list[dict[str, Any]]
#: Of b, c and d, according to `inspect`.
RESIDENCY = ("never written: absent before", "zero page after", "written: resident")


def run(settings: Settings) -> Section:
    """Measure both states on every kind of pages at every size."""
    section = Section(
        "triad",
        "a = b + c * d on arrays that were never written",
        "how wrong is a bandwidth test that does not write its arrays first? Two operations per item; the best of "
        "several runs in one process, alternating both states, after one that faults in a; medians over "
        "fresh processes.",
    )
    wanted, section.notes = chosen(settings, FULL, QUICK, ARRAYS)
    rounds, seconds = (2, 0.1) if settings.quick else (3, 0.5)
    cells = {(kind, size): cell(kind, size, seconds) for kind in KINDS for size in wanted}
    found: dict[Key, Values] = {}
    for (kind, size), values in shuffled.by_key(shuffled.run(cells, rounds, settings.progress)).items():
        section.raw[f"{kind}, {size}"] = values
        found |= {(kind, size, written): [one[state] for one in values] for state, written in STATES.items()}
    section.tables.append(rates(wanted, found))
    cache = max(caches().values(), default=64 * MIB)
    beyond = [size for size in wanted if 4 * size > cache] or [max(wanted)]
    section.verdicts += [verdict(kind, beyond, found) for kind in KINDS]
    section.notes += [trap(max(wanted), found), same(found), explained(max(wanted), found)]
    size = max(wanted)
    in_cpp.add_to(
        section,
        "triad",
        size,
        2 if settings.quick else 5,
        ("never written", "written"),
        lambda seconds: f"{flops(size, seconds) / 1e6:,.0f}",
        "MFlop/s",
    )
    title = "a = b + c * d in doubles: the same zeros, the same result"
    section.pictures.append(Picture("rates", title, lambda axes: draw(axes, wanted, found)))
    return section


def cell(kind: str, size: int, seconds: float) -> shuffled.Cell:
    """Return the process for one kind and size."""
    arguments = {"nbytes": size, "allocator": KINDS[kind], "seconds": seconds}
    return shuffled.Cell(FRESH, Call("firsttouch.tools.bench.tasks.triad", "measure", arguments), ARRAYS * size)


def flops(size: int, seconds: float) -> float:
    """Return operations per second."""
    return 2 * (size // 8) / seconds


def middle(values: Values, figure: str) -> float:
    """Return the median over the processes."""
    return float(np.median([one[figure] for one in values]))


def ratio(kind: str, size: int, found: dict[Key, Values]) -> Matrix:
    """Return how much faster never written arrays are, round by round."""
    written, never = (np.array([one["best"] for one in found[kind, size, state]]) for state in (True, False))
    return np.asarray(written / never, np.float64)[:, None]


def rates(wanted: list[int], found: dict[Key, Values]) -> Table:
    """Return the FLOP rates, and the residency of b, c and d before and after."""
    columns = ["each array", "pages", "never written", "written", "ratio", *RESIDENCY]
    table = Table("**MFlop/s**, and the residency of b, c and d", columns)
    for size in wanted:
        for kind in KINDS:
            never, written = found[kind, size, False], found[kind, size, True]
            speeds = [f"{flops(size, middle(values, 'best')) / 1e6:,.0f}" for values in (never, written)]
            before, after, full = never[0]["before"], never[0]["after"], written[0]["after"]
            states = [
                units.share(before["absent"], whole(before)),
                units.share(after["zero_page"], whole(after)),
                units.share(full["real"], whole(full)),
            ]
            first = name(size) if kind == next(iter(KINDS)) else ""
            table.rows.append([first, kind, *speeds, units.digits(float(np.median(ratio(kind, size, found)))), *states])
    return table


def whole(residency: dict[str, float]) -> float:
    """Return all bytes whose state is known."""
    return residency["absent"] + residency["zero_page"] + residency["real"]


def verdict(kind: str, beyond: list[int], found: dict[Key, Values]) -> Verdict:
    """Return whether unwritten arrays double the rate on these pages."""
    gain = geometric_mean([ratio(kind, size, found) for size in beyond])
    outcome = "passed" if gain.low >= BAR else "failed, see the explanation" if gain.high < BAR else "not shown"
    places = units.listed([name(size) for size in beyond])
    return Verdict(f"{kind}, {places}: never written arrays {BAR:g} times as fast as written ones", str(gain), outcome)


def trap(size: int, found: dict[Key, Values]) -> str:
    """Return the conclusion."""
    kind = "4 KiB pages"
    never, written = (flops(size, middle(found[kind, size, state], "best")) / 1e6 for state in (False, True))
    return (
        f"**The zero-page trap**: with arrays of {name(size)} on {kind} the triad seems to run at {never:,.0f} "
        f"MFlop/s; on arrays that were written once it runs at {written:,.0f}. A warm-up does not help: b, c and d "
        "remain the kernel's single zero page, in the cache. Write arrays before you measure, or call "
        "`firsttouch.inspect(b).is_backed`."
    )


def same(found: dict[Key, Values]) -> str:
    """Return whether both states computed the same."""
    bits = sum(one["bits"] for values in found.values() for one in values)
    if bits:
        return f"**Not comparable**: {bits:,.0f} items are not zero."
    return "Afterwards all arrays of all processes were checked bit by bit: all zeros, written or never written."


def explained(size: int, found: dict[Key, Values]) -> str:
    """Return the size of the pages that reads were given, from the number of faults."""
    parts: list[str] = []
    for kind in KINDS:
        mapped = 4 * size / max(1.0, middle(found[kind, size, False], "faults"))
        huge = mapped > 64 << 10
        parts.append(f"{kind}: one fault for {mapped / 1024:,.0f} KiB" + (", the huge zero page" if huge else ""))
    return (
        f"The size of the zero page, from the faults of never written arrays of {name(size)}: {'; '.join(parts)}. "
        "A small one stays in the first-level cache; a huge one comes from a cache further out, so its effect is "
        "smaller. Writing a costs the same in both states, and bounds the ratio."
    )


def draw(axes: Axes, wanted: list[int], found: dict[Key, Values]) -> None:
    """Plot FLOP rates by size: never written in red, written in green, a line style for each kind of pages."""
    for (state, written), colour in zip(STATES.items(), ("tab:red", "tab:green"), strict=True):
        for kind, style in zip(KINDS, ("-", "--", ":"), strict=True):
            speeds = [flops(size, middle(found[kind, size, written], "best")) / 1e6 for size in wanted]
            axes.plot(wanted, speeds, style, color=colour, marker="o", label=f"{state}, {kind}")
    axes.set(xscale="log", yscale="log", xlabel="each of the four arrays", ylabel="MFlop/s")
    by_size(axes, wanted)
    legend_beside(axes)
