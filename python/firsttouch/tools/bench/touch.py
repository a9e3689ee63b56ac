"""The rate of first touches: by page size, by method, by threads, by settings of the C library.

Daniel Lemire measured it in C++ in January 2020 (github.com/lemire/Code-used-on-Daniel-Lemire-s-blog, 2020/01/14, "new
char[s] + touch"), with 512 MB: allocating and touching one byte of each page ran at 3.8 GB/s with pages of 4 KiB and at
19.6 GB/s with transparent huge pages; `new char[s]()`, which writes byte by byte, at 1.6 and 2.4 GB/s; memset of
resident memory ran at 30 GB/s and memcpy at 12.5. (His GB are 2**30 bytes, and memcpy counts what it copies once; so
does this experiment, but with GB of 10**9.)

Each cell runs in a fresh process, in an order that is shuffled anew in every round; the effect of that order is
reported. The rows of new memory include the allocation. `malloc` and `calloc` are glibc's; it is configured by
environment variables, which have the effect of `mallopt`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from _firsttouch_start import units
from firsttouch.tools.bench import in_cpp, shuffled
from firsttouch.tools.bench.drawing import plain_numbers
from firsttouch.tools.bench.settings import Settings, chosen
from firsttouch.tools.bench.shuffled import Cell, Reply, order_effect
from firsttouch.tools.measuring.contenders import NUMPY, TUNED, Contender
from firsttouch.tools.measuring.picture import Picture
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call
from firsttouch.tools.measuring.sizes import MIB, name

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Table, row, column.
Key = tuple[str, str, str]
#: The arguments of `pages(huge=...)`.
KINDS: dict[str, Any] = {"4 KiB": False, "THP": "thp", "2 MiB from the pool": ["2M"]}
#: The environment of each column. Tunables of glibc 2.35: advise huge pages, or take them from the kernel's pool.
COLUMNS: dict[str, dict[str, str]] = {
    "glibc": {},
    "never mapped or trimmed": TUNED,
    "hugetlb=1 (THP)": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
    "hugetlb=2 (pool)": {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=2"},
    "NumPy's own": {},
}
#: The rows, with what is allocated and what is done to it.
WAYS = {
    "calloc, touched": ("allocated", "calloc", "touched"),
    "malloc, touched": ("allocated", "malloc", "touched"),
    "malloc, byte by byte": ("allocated", "malloc", "byte by byte"),
    "malloc, word by word": ("allocated", "malloc", "word by word"),
    "malloc, memset": ("allocated", "malloc", "memset"),
    "memset, memory that exists": ("existing", "malloc", "memset"),
    "memcpy, memory that exists": ("existing", "malloc", "memcpy"),
}
_OF_NUMPY = {"calloc": "np.zeros", "malloc": "np.empty"}
_TASK = "firsttouch.tools.bench.tasks.touch"


def every(size: int, processors: int, quick: bool) -> dict[Key, Cell]:
    """Return all cells of a size; a quick run omits the settings."""
    cells: dict[Key, Cell] = {}
    for kind, huge in KINDS.items():
        for row, (populate, threads, places) in rows(processors).items():
            arguments = {"nbytes": size, "huge": huge, "populate": populate, "threads": threads, "processors": places}
            cells["pages", row, kind] = Cell(NUMPY, Call(_TASK, "placed", arguments), size)
    for column, environment in COLUMNS.items():
        if quick and environment:
            continue
        contender = Contender(column, environment)
        for row, (function, maker, way) in WAYS.items():
            made = _OF_NUMPY[maker] if column == "NumPy's own" else maker
            call = Call(_TASK, function, {"nbytes": size, "maker": made, "way": way})
            cells["settings", row, column] = Cell(contender, call, 2 * size)
    return cells


def rows(processors: int) -> dict[str, tuple[int, int, int]]:
    """Return ways to fault in placed pages: threads that populate, threads that touch, processors to run on."""
    counts = sorted({1, *(2**power for power in range(1, 10) if 2**power < processors), processors})
    made: dict[str, tuple[int, int, int]] = {}
    for word in ("touched", "populated"):
        for threads in counts:
            label = f"{word}, {units.count(threads, 'thread')}"
            made[label] = (threads if word == "populated" else 0, threads, processors)
        if processors > 1:
            label = f"{word}, {processors} threads on one processor"
            made[label] = (processors if word == "populated" else 0, processors, 1)
    return made


Found = Mapping[Key, Mapping[str, Any]]
#: The columns that request huge pages.
HUGE = [column for column in (*KINDS, *COLUMNS) if "THP" in column or "pool" in column]
#: New memory has to be cleared by the kernel and then written, so it cannot be faster than one write, except for
#: noise.
NOISE = 1.25
#: A memset writes one stream; a memcpy reads one, writes one, and fetches what it writes.
STREAMS = 3.0


def shown(cell: Mapping[str, Any], kind: str) -> str:
    """Format a rate, with a remark if the requested pages were not obtained."""
    got = float(cell["huge"]) / float(cell["bytes"])
    return units.rate(cell["rate"]) + ("" if kind == "4 KiB" or got > 0.9 else f" ({units.share(got, 1)} huge)")


def answers(size: int, found: Found) -> list[str]:
    """Return the best rate of each kind of pages, and new memory compared with resident memory."""
    best: list[str] = []
    for kind in KINDS:
        cells = {
            row: cell["rate"] for (table, row, column), cell in found.items() if (table, column) == ("pages", kind)
        }
        row = max(cells, key=lambda one: float(cells[one]))
        best.append(f"{units.rate(cells[row])} on {kind} ({row})")
    old, new = (found["settings", row, "glibc"]["rate"] for row in ("memset, memory that exists", "malloc, memset"))
    return [
        f"**Best rates of first touch**, {name(size)} at a time: {units.listed(best)}.",
        (
            f"A memset of new memory runs at {units.rate(new)}, of resident memory at {units.rate(old)}, "
            f"{units.times(old / new)} as fast."
        ),
    ]


def doubts(found: Found) -> list[str]:
    """Report huge pages that were not obtained, work that was not done, and implausible rates."""
    said: list[str] = []
    for kind in HUGE:
        cells = [cell for (_, _, column), cell in found.items() if column == kind]
        fallen = [cell for cell in cells if cell["huge"] < 0.9 * cell["bytes"]]
        if fallen:
            reasons = sorted({reason for cell in fallen for reason in cell["why not"]})
            huge, whole = (sum(cell[which] for cell in cells) for which in ("huge", "bytes"))
            why = f": {'; '.join(reasons)}" if reasons else ""
            said.append(
                f"{kind}: {len(fallen)} of {len(cells)} cells fell back ({units.share(huge, whole)} huge){why}."
            )
    fallbacks = sum(cell["fallbacks"] for cell in found.values())
    said.append(f"Huge page faults that the kernel answered with small pages, machine-wide: {fallbacks:,.0f}.")
    for (_, row, column), cell in found.items():
        if cell["missing"]:
            said.append(
                f"**Not written**: {row}, {column}: {units.share(cell['missing'], cell['bytes'])} was never written."
            )
    return [*said, *_implausible(found)]


def _implausible(found: Found) -> list[str]:
    said: list[str] = []
    for column in dict.fromkeys(key[2] for key in found if key[0] == "settings"):
        rates = {row: float(found["settings", row, column]["rate"]) for row in WAYS}
        memset, memcpy = rates["memset, memory that exists"], rates["memcpy, memory that exists"]
        if memset > STREAMS * memcpy:
            said.append(
                f"**Implausible**, {column}: memset at {units.rate(memset)} is more than "
                f"{STREAMS:g} times as fast as memcpy "
                f"({units.rate(memcpy)}): one of them does not do its work."
            )
        said += [
            f"**Implausible**, {column}: {row} at {units.rate(one)} is faster than memset of resident memory "
            f"({units.rate(memset)}), though the kernel has to clear it first."
            for row, one in rates.items()
            if row.startswith("malloc, ") and row != "malloc, touched" and one > NOISE * memset
        ]
    return said


def order(replies: Sequence[Reply[Key]]) -> str:
    """Return whether the position of a cell in its round mattered."""
    effect = order_effect(replies, "rate")
    if effect is None:
        return "The effect of the order of the cells is unknown: none came both early and late."
    return f"Cells late in a round ran at {effect} times the rate of the same cells early in one (median of the cells)."


COLOURS = {"4 KiB": "tab:red", "THP": "tab:green", "2 MiB from the pool": "tab:blue", "glibc": "0.35"}


def rates(axes: Axes, found: Mapping[Key, Mapping[str, Any]]) -> None:
    """Plot fresh pages in the colour of their kind, the C library's memory in grey; the longest bars at the top."""
    cells = [(row, column, cell) for (_, row, column), cell in found.items() if column in COLOURS]
    cells.sort(key=lambda one: float(one[2]["rate"]))
    labels = [row if column == "glibc" else f"{row} ({column}{got(column, cell)})" for row, column, cell in cells]
    values = [cell["rate"] / 1e9 for *_, cell in cells]
    bars = axes.barh(labels, values, color=[COLOURS[column] for _, column, _ in cells])
    axes.bar_label(bars, fmt="%.1f", padding=2, fontsize="x-small")
    axes.set(xscale="log", xlabel="GB/s; grey: malloc, calloc, memset and memcpy of the C library, one thread")
    axes.set_xlim(0.7 * min(values), 1.6 * max(values))
    axes.tick_params(axis="y", labelsize="x-small")
    plain_numbers(axes.xaxis)


def got(kind: str, cell: Mapping[str, Any]) -> str:
    """Return a remark if the requested pages were not obtained."""
    return ", not obtained" if kind != "4 KiB" and cell["huge"] < 0.5 * cell["bytes"] else ""


ARRAYS = 2  # for memcpy
FULL, QUICK = 512 * MIB, 128 * MIB


def run(settings: Settings) -> Section:
    """Measure every cell once per round."""
    section = Section(
        "touch",
        "First touch of memory",
        "how many bytes per second can be written for the first time, by page size, method, threads and settings of "
        "the C library, compared with resident memory? Medians over fresh processes.",
    )
    wanted, section.notes = chosen(settings, (FULL,), (QUICK,), ARRAYS)
    for at, size in enumerate(wanted):
        cells = every(size, processors(), settings.quick)
        progress = partial(part, settings, at, len(wanted))
        replies = shuffled.run(cells, 2 if settings.quick else 3, progress)
        found = {key: middle(values) for key, values in shuffled.by_key(replies).items()}
        section.raw[name(size)] = {str(key): value for key, value in shuffled.by_key(replies).items()}
        section.tables += [by_pages(size, found), by_settings(size, found)]
        section.notes += [*answers(size, found), *doubts(found), order(replies)]
        title = f"Bytes per second, {name(size)} of memory"
        section.pictures.append(Picture(f"{size >> 20}", title, partial(rates, found=found)))
    size = max(wanted)
    in_cpp.add_to(
        section,
        "touch",
        size,
        2 if settings.quick else 5,
        ("the first time", "again after a free"),
        lambda seconds: units.rate(size / seconds),
        "allocated and touched",
    )
    section.notes.append(
        "**Touched** means that a byte of each page is written. Where the pages exist already, as after a free that "
        "kept them, such a rate is beyond any memory's: it says how little a touch costs, not how fast memory is."
    )
    return section


def processors() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0))


def part(settings: Settings, at: int, parts: int, done: float) -> None:
    """Report the progress of one size among several."""
    settings.progress((at + done) / parts)


def middle(values: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the median of each figure; of the reasons, the last."""
    figures = {key: float(np.median([one[key] for one in values])) for key in values[0] if key != "why not"}
    return {**figures, "why not": values[-1]["why not"]}


def by_pages(size: int, found: dict[Key, dict[str, Any]]) -> Table:
    """Return the table of ways and threads by kinds of pages."""
    table = Table(f"**{name(size)} of fresh pages**", ["way", *KINDS])
    for row in rows(processors()):
        table.rows.append([row, *(shown(found["pages", row, kind], kind) for kind in KINDS)])
    return table


def by_settings(size: int, found: dict[Key, dict[str, Any]]) -> Table:
    """Return the table of ways by settings of the C library, and NumPy's own memory."""
    columns = [column for column in COLUMNS if any(key[2] == column for key in found)]
    table = Table(f"**{name(size)} of the C library's memory, one thread**", ["way", *columns])
    for row in WAYS:
        table.rows.append([row, *(units.rate(found["settings", row, column]["rate"]) for column in columns)])
    return table
