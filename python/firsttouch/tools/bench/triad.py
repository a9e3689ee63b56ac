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

import time
from typing import TYPE_CHECKING, Any

import numpy as np

import firsttouch as ft
from _firsttouch_start import units
from firsttouch.tools.bench.common import FRESH, KINDS, Cell, Settings, by_size, faults, measured, middle, ratio
from firsttouch.tools.measuring.machine import caches
from firsttouch.tools.measuring.report import Picture, Section, Table
from firsttouch.tools.measuring.rounds import Call
from firsttouch.tools.measuring.sizes import MIB, name
from firsttouch.tools.measuring.statistics import Verdict

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = np.ndarray[Any, np.dtype[np.float64]]
ARRAYS = 5  # resident ones: four written arrays, and the one that the never written arrays are added into
FULL, QUICK = tuple(mib * MIB for mib in (1, 8, 64, 256, 512)), (MIB, 64 * MIB, 256 * MIB)
#: The gain of never written arrays from which on the trap deserves a warning.
BAR = 2.0
#: Items per block: its product stays in the processor's own cache, and Python's overhead is a few per cent.
BLOCK = 16384
#: Whether zeros were written into the arrays first.
STATES = {"never written": False, "written": True}
#: By kind of pages, size and state.
Found = dict[tuple[str, int, str], list[dict[str, Any]]]


def triad(a: Array, b: Array, c: Array, d: Array, product: Array) -> None:
    """Read b, c and d once and write a once, as a loop in C would; two operations per item."""
    for start in range(0, a.size, BLOCK):
        part = slice(start, start + BLOCK)
        here = product[: a[part].size]
        np.multiply(c[part], d[part], out=here)
        np.add(b[part], here, out=a[part])


def residency(arrays: list[Array]) -> dict[str, float]:
    """Return the shares of b, c and d, which are only read: absent, zero page, own memory."""
    found, nbytes = [ft.inspect(array) for array in arrays[1:]], sum(array.nbytes for array in arrays[1:])
    return {state: sum(getattr(one, state) or 0 for one in found) / nbytes for state in ("absent", "zero_page", "real")}


def measure(nbytes: int, allocator: str, seconds: float) -> dict[str, Any]:
    """Return, for each state, the best time and the page faults; runs alternate so that disturbances affect both.

    `not zero` counts items that are not +0.0 afterwards.
    """
    arrays = {state: [ft.zeros(nbytes // 8, allocator=allocator) for _ in range(4)] for state in STATES}
    for array in arrays["written"]:
        array.fill(0.0)
    before = {state: residency(each) for state, each in arrays.items()}
    product, times = np.full(BLOCK, 0.0), {state: list[float]() for state in STATES}
    faulted = dict.fromkeys(STATES, 0)
    end = time.perf_counter() + seconds
    while len(times["written"]) < 4 or time.perf_counter() < end:
        for state, (a, b, c, d) in arrays.items():
            count, start = faults(), time.perf_counter()
            triad(a, b, c, d, product)
            times[state].append(time.perf_counter() - start)
            faulted[state] += faults() - count
    return {
        state: {
            "best": min(times[state][1:]),  # the first faults in a
            "faults": faulted[state],
            "not zero": sum(int(np.count_nonzero(array.view(np.uint64))) for array in each),
            **{f"{what} before": share for what, share in before[state].items()},
            **{f"{what} after": share for what, share in residency(each).items()},
        }
        for state, each in arrays.items()
    }


def run(settings: Settings) -> Section:
    """Measure both states on every kind of pages at every size."""
    section = Section(
        "triad",
        "a = b + c * d on arrays that were never written",
        "how wrong is a bandwidth test that does not write its arrays first? Two operations per item; the best of "
        "several runs in one process, alternating both states, after one that faults in a; medians over "
        "fresh processes.",
    )
    wanted, section.notes = settings.chosen(FULL, QUICK, ARRAYS)
    rounds, seconds = (2, 0.1) if settings.quick else (3, 0.5)
    cells = {
        (kind, size): Cell(
            Call(__name__, "measure", {"nbytes": size, "allocator": expression, "seconds": seconds}),
            ARRAYS * size,
            FRESH,
        )
        for kind, expression in KINDS.items()
        for size in wanted
    }
    replies = measured(cells, rounds, settings.progress)
    section.raw = {f"{kind}, {size}": values for (kind, size), values in replies.items()}
    found = {(*key, state): [reply[state] for reply in values] for key, values in replies.items() for state in STATES}
    section.tables.append(rates(wanted, found))
    cache = max(caches().values(), default=64 * MIB)
    beyond = next((size for size in wanted if 4 * size > cache), max(wanted))
    section.verdicts += [verdict(kind, beyond, found) for kind in KINDS]
    section.notes += [trap(max(wanted), found), same(found)]
    title = "a = b + c * d in doubles: the same zeros, the same result"
    section.pictures.append(Picture("rates", title, lambda axes: draw(axes, wanted, found)))
    return section


def mflops(size: int, replies: list[dict[str, Any]]) -> float:
    """Return millions of operations per second."""
    return 2 * (size // 8) / middle(replies, "best") / 1e6


def rates(wanted: list[int], found: Found) -> Table:
    """Return the rates, and the residency of b, c and d: never written before and after, written after."""
    columns = ["each array", "pages", *STATES, "ratio", "absent before", "zero page after", "page faults"]
    table = Table("**MFlop/s**, and the residency of b, c and d where they were never written", columns)
    for size in wanted:
        for kind in KINDS:
            never, written = (found[kind, size, state] for state in STATES)
            speeds = [f"{mflops(size, replies):,.0f}" for replies in (never, written)]
            shares = [units.share(middle(never, what), 1) for what in ("absent before", "zero_page after")]
            times = units.digits(ratio(written, never, "best").value)
            table.rows.append([name(size), kind, *speeds, times, *shares, f"{middle(never, 'faults'):,.0f}"])
    return table


def verdict(kind: str, size: int, found: Found) -> Verdict:
    """Return whether unwritten arrays double the rate on these pages, at the first size beyond the caches."""
    gain = ratio(found[kind, size, "written"], found[kind, size, "never written"], "best")
    outcome = "passed" if gain.low >= BAR else "failed" if gain.high < BAR else "not shown"
    return Verdict(
        f"{kind}, {name(size)}: never written arrays {BAR:g} times as fast as written ones", str(gain), outcome
    )


def trap(size: int, found: Found) -> str:
    """Return the conclusion."""
    kind = "4 KiB pages"
    never, written = (mflops(size, found[kind, size, state]) for state in STATES)
    return (
        f"**The zero-page trap**: with arrays of {name(size)} on {kind} the triad seems to run at {never:,.0f} "
        f"MFlop/s; on arrays that were written once it runs at {written:,.0f}. A warm-up does not help: b, c and d "
        "remain the kernel's single zero page, in the cache. Write arrays before you measure, or call "
        "`firsttouch.inspect(b).is_backed`."
    )


def same(found: Found) -> str:
    """Return whether both states computed the same."""
    wrong = sum(reply["not zero"] for replies in found.values() for reply in replies)
    if wrong:
        return f"**Not comparable**: {wrong:,.0f} items are not zero."
    return "Afterwards all arrays of all processes were checked bit by bit: all zeros, written or never written."


def draw(axes: Axes, wanted: list[int], found: Found) -> None:
    """Plot rates by size: never written in red, written in green, a line style for each kind of pages."""
    for state, colour in zip(STATES, ("tab:red", "tab:green"), strict=True):
        for kind, style in zip(KINDS, ("-", "--", ":"), strict=True):
            speeds = [mflops(size, found[kind, size, state]) for size in wanted]
            axes.plot(wanted, speeds, style, color=colour, marker="o", label=f"{state}, {kind}")
    axes.set(xlabel="each of the four arrays", ylabel="MFlop/s")
    by_size(axes, wanted)
