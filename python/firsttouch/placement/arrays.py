"""Placement of arrays that exist: touching, huge pages, moving to other nodes, and their receipts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from firsttouch import _firsttouch
from firsttouch._internal import validation as arguments
from firsttouch.placement.axes import axis_of
from firsttouch.placement.bar import bar
from firsttouch.placement.policies import PolicyLike, policy


class Touched(NamedTuple):
    """What :func:`touch` did."""

    nbytes: int
    threads: int
    by_kernel: bool
    """Whether the kernel's populate did it; otherwise a write to each page, or a read."""


class Collapsed(NamedTuple):
    """What :func:`collapse` did."""

    huge: int
    """Bytes that lie on huge pages now."""
    why_not: str | None
    """Why not all whole huge pages of the array are."""


class Migrated(NamedTuple):
    """What :func:`migrate` did, in bytes of whole pages."""

    moved: int
    stayed: int
    absent: int
    """Not real yet, or the kernel's page of zeros: nothing to move."""
    failed: int
    why_not: str | None


@dataclass(frozen=True)
class Receipt:
    """What was asked for an array's memory, and what was granted."""

    nbytes: int
    mapped: int
    asked: str
    """The arguments of ``pages``."""
    huge: str | None
    """Page size granted; ``"thp"`` is a wish, that the kernel fulfils page by page."""
    numa: str | None
    populated: bool
    threads: int
    """Threads that made it real."""
    locked: bool
    why_not: tuple[str, ...]
    """A sentence for each thing asked for that is not so."""


class ReceiptSum(NamedTuple):
    """One line of :func:`receipts`."""

    wish: str
    why_not: str | None
    """``None``: granted."""
    blocks: int
    nbytes: int


def touch(
    a: np.ndarray,
    threads: int | None = None,
    pattern: Literal["dynamic", "static"] = "dynamic",
    *,
    progress: bool = False,
) -> Touched:
    """Makes the pages of ``a`` real, without changing a byte, also while others write to it.

    ``threads``: ``None`` is what suits the size and the processors. ``pattern``: ``"static"`` gives each thread one
    slab, as the threads of a static loop have; ``"dynamic"`` the next piece that nobody has. A read-only array is read:
    what was never written then stays the kernel's page of zeros. Of a strided view all between its first and its last
    byte is touched. ``progress`` draws a bar on standard error. Runs without the GIL; Ctrl-C ends it.

    Raises :exc:`TypeError` for what is no array, :exc:`ValueError` for other threads or patterns, :exc:`MemoryError`
    where there is less memory.
    """
    start, nbytes = _range("touch()", a)
    arguments.one_of("pattern", pattern, ("dynamic", "static"))
    threads = None if threads is None else arguments.threads("threads", threads, "None, or")
    shown = bar(nbytes) if arguments.flag("progress", progress) and nbytes else None
    done = _firsttouch.touch_range(start, nbytes, a.flags.writeable, threads, pattern == "static", shown)
    if shown is not None:
        shown(nbytes)
    return Touched(nbytes, *done)


def collapse(a: np.ndarray) -> Collapsed:
    """Puts the whole huge pages inside ``a`` onto huge pages, now (``MADV_COLLAPSE``, Linux 6.1).

    Raises :exc:`TypeError` for what is no array.
    """
    return Collapsed(*_firsttouch.collapse_range(*_range("collapse()", a)))


def migrate(a: np.ndarray, numa: PolicyLike) -> Migrated:
    """Moves the pages of ``a`` that are real to where a policy says.

    Pages that are not come from there too, where ``a`` is the whole of an array made by ``pages(numa=...)``; of others
    only what exists is moved, since their memory will be somebody else's. A page at an edge goes along as a whole.

    Raises :exc:`ValueError` for what is no policy or a node that is not there, :exc:`TypeError` for what is no array,
    :exc:`OSError` where the system lets nobody move pages, or a policy or cpuset from outside allows none of the nodes.
    """
    start, nbytes = _range("migrate()", a)
    chosen = str(policy("numa", numa))
    axis = axis_of(a, int(chosen.removeprefix("blocked:"))) if chosen.startswith("blocked:") else None
    if nbytes == 0:
        return Migrated(0, 0, 0, 0, None)
    return Migrated(*_firsttouch.migrate_range(start, nbytes, chosen, axis, _firsttouch.get_allocator(_owner(a))))


def receipt(a: np.ndarray) -> Receipt | None:
    """What was asked and granted for the memory of ``a``; ``None`` where it does not come from placed pages."""
    start, _ = _range("receipt()", a)
    owner = _owner(a)
    base: object = owner.base
    if isinstance(base, _firsttouch.SharedMapping):
        found = base.receipt()
    else:
        allocator = _firsttouch.get_allocator(owner)
        found = None if allocator is None else _firsttouch.receipt_of(allocator, start)
    return None if found is None else Receipt(**{**found, "why_not": tuple(found["why_not"])})


def receipts() -> list[ReceiptSum]:
    """What this process asked for and got so far: each wish with its outcomes, arrays that are gone included."""
    return [ReceiptSum(*line) for line in _firsttouch.receipt_sums()]


def _range(caller: str, a: object) -> tuple[int, int]:
    """The address of the first byte and the bytes up to the last."""
    if not isinstance(a, np.ndarray):
        raise TypeError(f"{caller} takes a NumPy array, not {type(a).__name__}: {a!r:.60}")
    if a.size == 0:
        return 0, 0
    low, high = np.lib.array_utils.byte_bounds(a)
    return low, high - low


def _owner(a: np.ndarray) -> np.ndarray:
    """The array whose memory it is."""
    while isinstance(a.base, np.ndarray):
        a = a.base
    return a
