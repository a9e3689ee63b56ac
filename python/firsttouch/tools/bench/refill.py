"""One array filled twice: the first fill of a lazily zeroed array pays for its memory.

The experiment is from the caveats in the documentation of ArrayAllocators.jl, a Julia package by Mark Kittisopikul
(mkitti.github.io/ArrayAllocators.jl, "Example Basic Usage"). With 1 MiB, an array of `calloc` took 349 us to fill and
then 136 us; one of Julia's `zeros`, which writes the zeros at once, took 138 us and 136 us. It did not try an array
that was only read before: its pages are then the kernel's shared zero page, and each write makes a copy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from _firsttouch_start import units
from firsttouch.tools.bench import shuffled
from firsttouch.tools.bench.drawing import by_size, legend_beside
from firsttouch.tools.bench.settings import KINDS, Settings, chosen
from firsttouch.tools.bench.tasks.refill import BEFORE, NAMES
from firsttouch.tools.measuring.contenders import Contender
from firsttouch.tools.measuring.picture import Picture
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call
from firsttouch.tools.measuring.sizes import MIB, name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ARRAYS = 1
FULL = tuple(mib * MIB for mib in (1, 4, 16, 64, 256, 512))
QUICK = (MIB, 16 * MIB, 64 * MIB)
# Every array comes from the kernel; otherwise glibc would, from 1 MiB on, reuse what another iteration has written.
FRESH = Contender("fresh", {"MALLOC_MMAP_THRESHOLD_": str(128 << 10)})
Key = tuple[str, str, int]
Found = dict[Key, dict[str, float]]


def run(settings: Settings) -> Section:
    """Measure every initial state, on every kind of pages, at every size."""
    section = Section(
        "refill",
        "The same array filled twice",
        "what does the first fill of a zeroed array cost, and does reading the array before help? "
        "Medians over fresh arrays in fresh processes; in a page fault the kernel provides a page.",
    )
    wanted, section.notes = chosen(settings, FULL, QUICK, ARRAYS)
    rounds, turns = (1, 3) if settings.quick else (3, 5)
    cells = {(kind, size): cell(kind, size, max(1, min(turns, FULL[-1] // size))) for kind in KINDS for size in wanted}
    answers = shuffled.by_key(shuffled.run(cells, rounds, settings.progress))
    found: Found = {}
    for (kind, size), values in answers.items():
        section.raw[f"{kind}, {size}"] = values
        for before in BEFORE:
            one = {figure: float(np.median([reply[before][figure] for reply in values])) for figure in NAMES}
            found[kind, before, size] = one
    section.tables += [table(kind, wanted, found) for kind in KINDS]
    section.notes += [answer(found, max(wanted)), *odd(found)]
    section.pictures.append(Picture("first-fill", "Rate of the first fill of an array", lambda axes: draw(axes, found)))
    return section


def cell(kind: str, size: int, turns: int) -> shuffled.Cell:
    """Return the process for one kind and size."""
    arguments = {"nbytes": size, "allocator": KINDS[kind], "turns": turns}
    return shuffled.Cell(FRESH, Call("firsttouch.tools.bench.tasks.refill", "measure", arguments), size)


def table(kind: str, wanted: list[int], found: Found) -> Table:
    """Return sizes and states: both fills with their faults."""
    made = Table(f"**{kind}**", ["array", "before", "first fill", "page faults", "second fill", "page faults"])
    for size in wanted:
        for before in BEFORE:
            one = found[kind, before, size]
            figures = [
                words
                for fill in ("first", "second")
                for words in (units.seconds(one[fill]), f"{one[f'{fill} faults']:,.0f}")
            ]
            made.rows.append([name(size) if before == next(iter(BEFORE)) else "", before, *figures])
    return made


def answer(found: Found, size: int) -> str:
    """Return the conclusion at the largest size, for each kind."""
    against = {
        before: [found[kind, before, size]["first"] / found[kind, "written first", size]["first"] for kind in KINDS]
        for before in ("never touched", "read first")
    }
    untouched, read = ([units.times(ratio) for ratio in ratios] for ratios in against.values())
    words = units.listed([f"{ratio} ({kind})" for ratio, kind in zip(untouched, KINDS, strict=True)])
    again = max(one["second faults"] / one["first faults"] for one in found.values() if one["first faults"])
    return (
        f"**The first fill pays for the memory**: at {name(size)} that of an untouched array takes {words} as long as "
        f"that of an array written before. After a read alone it is {units.listed(read)}: a read maps the kernel's "
        "shared zero page, and the write faults again to copy it."
        + (" The second fill takes no faults." if again < 0.01 else "")
    )


def odd(found: Found) -> list[str]:
    """Report arrays that were not in the intended state."""
    return [
        f"{kind}, {before}, {name(size)}: {one['absent'] / one['bytes']:.0%} absent and "
        f"{one['zero'] / one['bytes']:.0%} zero page before the first fill, which was not intended."
        for (kind, before, size), one in found.items()
        if one["bytes"] - one[{"never touched": "absent", "read first": "zero"}.get(before, "bytes")] > 8192
    ]


def draw(axes: Axes, found: Found) -> None:
    """Plot rates of the first fill by size: a colour for each state, a line style for each kind of pages."""
    wanted = sorted({size for *_, size in found})
    for before, colour in zip(BEFORE, ("tab:red", "tab:orange", "tab:green"), strict=True):
        for kind, style in zip(KINDS, ("-", "--", ":"), strict=True):
            rates = [size / found[kind, before, size]["first"] / 1e9 for size in wanted]
            axes.plot(wanted, rates, style, color=colour, marker="o", label=f"{before}, {kind}")
    axes.set(xscale="log", yscale="log", xlabel="array", ylabel="first fill, GB/s")
    by_size(axes, wanted)
    legend_beside(axes, "before the fill, pages")
