"""Placement: where an array's pages come from, when they become real, and what was granted."""

from __future__ import annotations

import operator
from typing import NamedTuple

import numpy as np

from firsttouch import _firsttouch
from firsttouch._firsttouch import current_node
from firsttouch._internal import units
from firsttouch._internal.arguments import Policy, byte_range

__all__ = [
    "Migrated",
    "Node",
    "Receipt",
    "current_node",
    "migrate",
    "receipt",
    "topology",
    "touch",
]


class Migrated(NamedTuple):
    """Result of :func:`firsttouch.migrate`, in bytes of whole pages.

    See Also
    --------
    firsttouch.migrate : Returns it.

    """

    moved: int
    """Moved to another node."""
    stayed: int
    """Already in place."""
    absent: int
    """Not faulted in yet, or the shared zero page: nothing to move."""
    failed: int
    """Could not be moved."""
    why_not: str | None
    """Why some could not be moved, or ``None``."""


class Receipt(NamedTuple):
    """What was requested for an array's memory, and what was granted.

    See Also
    --------
    firsttouch.receipt : Returns it.

    """

    nbytes: int
    """Bytes requested; of a block that a pool recycles, by its first request."""
    mapped: int
    """Bytes mapped, in whole pages."""
    asked: str
    """Arguments of :func:`firsttouch.pages`; empty for memory of a pool, or of pages that ask for nothing."""
    huge: str | None
    """Page size granted; ``"thp"`` is a hint that the kernel follows page by page. Of a recycled block it is ``None``
    also where that is not known: :func:`firsttouch.inspect` tells."""
    numa: str | None
    """Policy granted."""
    populated: bool
    """Whether all pages were faulted in."""
    threads: int
    """Number of threads that faulted them in."""
    locked: bool
    """Whether the pages are locked in memory."""
    why_not: tuple[str, ...]
    """A sentence for each request that was not granted."""
    origin: str
    """Whether the memory was recycled or fresh, on which pages, and which rule decided so."""

    @property
    def granted(self) -> str:
        """What was granted, in words."""
        threads = f" by {self.threads} threads" if self.threads > 1 else ""
        granted = [
            f"huge={self.huge!r}" if self.huge else "",
            f"numa={self.numa!r}" if self.numa else "",
            f"populated{threads}" if self.populated else "",
            "locked" if self.locked else "",
        ]
        otherwise = "the pages of an earlier block" if self.origin.startswith("recycled") else "small pages, lazily"
        return ", ".join(filter(None, granted)) or otherwise

    def _repr_html_(self) -> str:
        rows = [("mapped", units.size(self.mapped)), ("granted", self.granted), ("origin", self.origin)]
        return units.table(f"receipt: {self.asked}", [*rows, *(("why not", why) for why in self.why_not)])


def touch(
    a: np.ndarray,
    threads: int | None = None,
) -> None:
    """Fault in the pages of an array without changing its contents.

    Parameters
    ----------
    a : ndarray
        Array to touch. Of a strided view, everything between its first and its last byte is touched.
    threads : int, optional
        Number of threads, 1 to 1024. The default suits the size and the processors.

    Raises
    ------
    TypeError
        If `a` is not a NumPy array.
    ValueError
        If `threads` is not one of the above.
    MemoryError
        If the pages need more memory than the machine or its memory cgroup has left.

    See Also
    --------
    pages : Allocate arrays with ``populate=True``.
    inspect : Whether all pages exist.

    Notes
    -----
    Other threads may write to the array meanwhile. Touching releases the GIL; Ctrl-C takes effect at its end. A
    read-only array is read: pages that were never written then become the kernel's shared zero page.

    Examples
    --------
    >>> a = ft.pages().zeros(10**6)
    >>> ft.touch(a, threads=2)
    >>> ft.inspect(a).is_backed
    True

    """
    start, nbytes = byte_range("touch()", a)
    if threads is not None and not 1 <= operator.index(threads) <= 1024:
        raise ValueError(f"threads={threads!r:.40}: give None, or a number of threads from 1 to 1024")
    _firsttouch.touch_range(start, nbytes, a.flags.writeable, threads)


def migrate(a: np.ndarray, numa: Policy) -> Migrated:
    """Move an array's pages to other NUMA nodes.

    Parameters
    ----------
    a : ndarray
        Array to move. Pages at its edges are moved as a whole.
    numa : int or str
        Node or policy, such as ``1`` or ``"interleave:all"``, as for :func:`pages`.

    Returns
    -------
    firsttouch.placement.Migrated

    Raises
    ------
    TypeError
        If `a` is not a NumPy array, or `numa` is not a policy.
    ValueError
        If there is no such policy or node.
    OSError
        If the system does not allow pages to be moved, or a policy or cpuset imposed from outside allows none of the
        nodes.

    See Also
    --------
    numa : Allocate on a node.

    Notes
    -----
    Only existing pages are moved. Those that do not exist yet will come from where the allocator says.

    Examples
    --------
    >>> ft.migrate(np.ones(10**6), ft.placement.current_node()).failed
    0

    """
    start, nbytes = byte_range("migrate()", a)
    return Migrated(*_firsttouch.migrate_range(start, nbytes, numa))


def receipt(a: np.ndarray) -> Receipt | None:
    """Return what was requested and granted for an array's memory.

    Parameters
    ----------
    a : ndarray
        Array to look up.

    Returns
    -------
    firsttouch.placement.Receipt or None
        ``None`` if the memory comes neither from a pool nor from pages.

    Raises
    ------
    TypeError
        If `a` is not a NumPy array.

    See Also
    --------
    inspect : The same, and which pages exist.

    Examples
    --------
    >>> a = ft.pages(huge="1G").zeros(10**6)
    >>> ft.receipt(a).huge
    'thp'
    >>> ft.receipt(a).why_not
    ("huge='1G': ...",)
    >>> ft.receipt(ft.pool().zeros(10**6)).origin
    'fresh, on ... pages...'

    """
    start, _ = byte_range("receipt()", a)
    found = _firsttouch.receipt_of(a, start)
    return None if found is None else Receipt(*found)


class Node(NamedTuple):
    """A NUMA node; sizes are in bytes.

    See Also
    --------
    firsttouch.placement.topology : Returns all of them.

    """

    number: int
    """Number of the node."""
    processors: tuple[int, ...]
    """Its processors' numbers."""
    memory: int
    """Total memory."""
    free: int
    """Free memory."""
    available: int
    """Free memory and page cache that can be reclaimed."""
    distances: tuple[int, ...]
    """Distance to every node that is online; 10 is the node's own memory."""


def topology() -> tuple[Node, ...]:
    """Return the machine's NUMA nodes that are online, by ascending number.

    Returns
    -------
    tuple of firsttouch.placement.Node

    See Also
    --------
    placement.current_node : The node of this thread.

    Examples
    --------
    >>> [node.number for node in ft.placement.topology()][0]
    0

    """
    return tuple(
        Node(number, tuple(processors), *(memory or (0, 0, 0)), tuple(distances))
        for number, processors, memory, distances in _firsttouch.numa_nodes()
    )
