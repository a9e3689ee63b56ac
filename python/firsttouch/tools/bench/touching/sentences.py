"""What the experiment `touch` says in words: the answer, the doubts, and what the order did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from firsttouch.tools.bench.shuffled import Reply, order_effect
from firsttouch.tools.bench.touching.cells import COLUMNS, KINDS, WAYS, Key
from firsttouch.tools.bench.words import listed, percent, rate, times
from firsttouch.tools.measuring.sizes import name

Found = Mapping[Key, Mapping[str, Any]]
#: The columns that asked for huge pages.
HUGE = [column for column in (*KINDS, *COLUMNS) if "THP" in column or "pool" in column]
#: New memory has to be cleared by the kernel and written: faster than one write of it cannot be, but for noise.
NOISE = 1.25
#: A memset writes one stream; a memcpy reads one and writes one, and fetches what it writes.
STREAMS = 3.0


def shown(cell: Mapping[str, Any], kind: str) -> str:
    """A rate, with a word where the pages asked for could not be had."""
    got = float(cell["huge"]) / float(cell["bytes"])
    return rate(cell["rate"]) + ("" if kind == "4 KiB" or got > 0.9 else f" ({percent(got, 1)} huge)")


def answers(size: int, found: Found) -> list[str]:
    """The best of each kind of pages, and new memory against memory that exists."""
    best: list[str] = []
    for kind in KINDS:
        cells = {
            row: cell["rate"] for (table, row, column), cell in found.items() if (table, column) == ("pages", kind)
        }
        row = max(cells, key=lambda one: float(cells[one]))
        best.append(f"{rate(cells[row])} on {kind} ({row})")
    old, new = (found["settings", row, "glibc"]["rate"] for row in ("memset, memory that exists", "malloc, memset"))
    return [
        f"**At most** {listed(best)} become real, {name(size)} at a time.",
        f"A memset of new memory runs at {rate(new)}, of memory that exists at {rate(old)}, {times(old / new)} that.",
    ]


def doubts(found: Found) -> list[str]:
    """Huge pages that could not be had, work that was not done, and rates that cannot be."""
    said: list[str] = []
    for kind in HUGE:
        cells = [cell for (_, _, column), cell in found.items() if column == kind]
        fallen = [cell for cell in cells if cell["huge"] < 0.9 * cell["bytes"]]
        if fallen:
            reasons = sorted({reason for cell in fallen for reason in cell["why not"]})
            huge, whole = (sum(cell[which] for cell in cells) for which in ("huge", "bytes"))
            why = f": {'; '.join(reasons)}" if reasons else ""
            said.append(f"{kind}: {len(fallen)} of {len(cells)} cells fell back ({percent(huge, whole)} huge){why}.")
    fallbacks = sum(cell["fallbacks"] for cell in found.values())
    said.append(f"Huge page faults that the kernel answered with small pages, machine-wide: {fallbacks:,.0f}.")
    for (_, row, column), cell in found.items():
        if cell["missing"]:
            said.append(f"**Not real**: {row}, {column}: {percent(cell['missing'], cell['bytes'])} was never written.")
    return [*said, *_implausible(found)]


def _implausible(found: Found) -> list[str]:
    said: list[str] = []
    for column in dict.fromkeys(key[2] for key in found if key[0] == "settings"):
        rates = {row: float(found["settings", row, column]["rate"]) for row in WAYS}
        memset, memcpy = rates["memset, memory that exists"], rates["memcpy, memory that exists"]
        if memset > STREAMS * memcpy:
            said.append(
                f"**Implausible**, {column}: memset at {rate(memset)} is more than {STREAMS:g} times as fast as memcpy "
                f"({rate(memcpy)}): something does not write."
            )
        said += [
            f"**Implausible**, {column}: {row} at {rate(one)} is faster than memset of memory that exists "
            f"({rate(memset)}), though the kernel has to clear it first."
            for row, one in rates.items()
            if row.startswith("malloc, ") and row != "malloc, touched" and one > NOISE * memset
        ]
    return said


def order(replies: Sequence[Reply[Key]]) -> str:
    """Whether it mattered when in a round a cell came."""
    effect = order_effect(replies, "rate")
    if effect is None:
        return "What the order of the cells did cannot be said: none came both early and late."
    return f"Cells late in a round ran at {effect} times the rate of the same cells early in one (median of the cells)."
