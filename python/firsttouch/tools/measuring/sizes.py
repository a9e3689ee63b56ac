"""The array sizes that experiments use, and which of them fit into memory."""

from __future__ import annotations

from collections.abc import Sequence

from _firsttouch_start import units
from firsttouch.tools.measuring.machine import available

KIB, MIB = 1 << 10, 1 << 20

ROOM = 0.6
"""The fraction of the free memory that an experiment may use."""


def name(nbytes: int) -> str:
    """Format a size exactly, because sizes are keys and must be distinguishable."""
    return units.size(nbytes, 6)


class NoRoomError(RuntimeError):
    """Arrays of no size fit into the free memory; the message says what would be needed."""


def fitting(sizes: Sequence[int], arrays: int) -> tuple[list[int], list[str]]:
    """Return the sizes at which that many arrays fit into most of the free memory, and a note about the others.

    Raises :exc:`NoRoomError` if there is none.
    """
    free = available()
    room = int(free * ROOM)
    kept = [size for size in sizes if size * arrays <= room]
    if sizes and not kept:
        need = f"{units.count(arrays, 'array')} of {name(min(sizes))}"
        share = f"{100 * ROOM:g} % of what is free, which is {units.size(free)}"
        raise NoRoomError(f"not enough memory: {need} must fit into {share}")
    left_out = [name(size) for size in sizes if size * arrays > room]
    notes = [f"Left out for lack of memory: {', '.join(left_out)}."] if left_out else []
    return kept, notes
