"""Placement of existing arrays: first touch, huge pages, migration between nodes, and receipts."""

from __future__ import annotations

from typing import Literal

import numpy as np

from firsttouch import _firsttouch
from firsttouch._internal import validation as arguments
from firsttouch.placement.axes import axis_of
from firsttouch.placement.bar import bar
from firsttouch.placement.policies import PolicyLike, policy
from firsttouch.placement.results import Collapsed, Migrated, Receipt, ReceiptSum, Touched


def touch(
    a: np.ndarray,
    threads: int | None = None,
    pattern: Literal["dynamic", "static"] = "dynamic",
    *,
    progress: bool = False,
) -> Touched:
    """Fault in the pages of an array without changing its contents.

    Parameters
    ----------
    a : ndarray
        Array to touch. Of a strided view, everything between its first and its last byte is touched.
    threads : int, optional
        Number of threads, 1 to 1024. The default suits the size and the processors.
    pattern : {"dynamic", "static"}, optional
        Which pages a thread touches: ``"dynamic"`` takes the next piece that is free, ``"static"`` gives each thread
        one slab, as a statically scheduled loop does.
    progress : bool, optional
        Whether a progress bar is drawn on standard error.

    Returns
    -------
    firsttouch.placement.Touched

    Raises
    ------
    TypeError
        If `a` is not a NumPy array.
    ValueError
        If `threads` or `pattern` is not one of the above.
    MemoryError
        If less memory is available.

    See Also
    --------
    pages : Allocate arrays with ``populate=True``.
    inspect : Whether all pages exist.

    Notes
    -----
    Other threads may write to the array meanwhile. Touching releases the GIL and can be interrupted by Ctrl-C. A
    read-only array is read: pages that were never written then become the kernel's shared zero page.

    Examples
    --------
    >>> a = ft.pages().zeros(10**6)
    >>> ft.touch(a, threads=2).nbytes
    8000000
    >>> ft.inspect(a).is_backed
    True

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
    """Move an array's memory onto huge pages, now.

    Parameters
    ----------
    a : ndarray
        Array to collapse. Only huge pages that lie entirely within it are made.

    Returns
    -------
    firsttouch.placement.Collapsed

    Raises
    ------
    TypeError
        If `a` is not a NumPy array.

    See Also
    --------
    pages : Allocate on huge pages with ``huge="thp"``.

    Notes
    -----
    Uses ``MADV_COLLAPSE`` (Linux 6.1), which copies the pages. It pays off for arrays that are used for long.

    Examples
    --------
    >>> result = ft.collapse(np.ones(10**6))
    >>> result.huge == 0 or result.huge >= 2**21
    True

    """
    return Collapsed(*_firsttouch.collapse_range(*_range("collapse()", a)))


def migrate(a: np.ndarray, numa: PolicyLike) -> Migrated:
    """Move an array's pages to other NUMA nodes.

    Parameters
    ----------
    a : ndarray
        Array to move. Pages at its edges are moved as a whole.
    numa : int, str or Policy
        Node or policy, such as ``1`` or ``"blocked:0"``.

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
    If `a` is the whole of an array made by ``pages(numa=...)``, pages that do not exist yet will come from there as
    well. Of other arrays only existing pages are moved, since their memory may serve another array next.

    Examples
    --------
    >>> ft.migrate(np.ones(10**6), ft.current_node()).failed
    0

    """
    start, nbytes = _range("migrate()", a)
    chosen = str(policy("numa", numa))
    axis = axis_of(a, int(chosen.removeprefix("blocked:"))) if chosen.startswith("blocked:") else None
    if nbytes == 0:
        return Migrated(0, 0, 0, 0, None)
    return Migrated(*_firsttouch.migrate_range(start, nbytes, chosen, axis, _firsttouch.get_allocator(_owner(a))))


def receipt(a: np.ndarray) -> Receipt | None:
    """Return what was requested and granted for an array's memory.

    Parameters
    ----------
    a : ndarray
        Array to look up.

    Returns
    -------
    firsttouch.placement.Receipt or None
        ``None`` if the memory does not come from placed pages.

    Raises
    ------
    TypeError
        If `a` is not a NumPy array.

    See Also
    --------
    receipts : The same in sums, for the whole process.

    Examples
    --------
    >>> a = ft.pages(huge=("1G", "thp")).zeros(10**6)
    >>> ft.receipt(a).huge
    'thp'
    >>> ft.receipt(a).why_not
    ("huge='1G': ...",)

    """
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
    """Return what this process has requested and been granted so far, including for arrays that are gone.

    Returns
    -------
    list of firsttouch.placement.ReceiptSum
        One for each kind of request and outcome.

    See Also
    --------
    receipt : The same for one array.

    Examples
    --------
    >>> a = ft.pages(populate=True).zeros(10**6)
    >>> [line.why_not for line in ft.receipts() if line.wish == "populate"]
    [None...]

    """
    return [ReceiptSum(*line) for line in _firsttouch.receipt_sums()]


def _range(caller: str, a: object) -> tuple[int, int]:
    """Return the address of the first byte, and the bytes up to the last."""
    if not isinstance(a, np.ndarray):
        raise TypeError(f"{caller} takes a NumPy array, not {type(a).__name__}: {a!r:.60}")
    if a.size == 0:
        return 0, 0
    low, high = np.lib.array_utils.byte_bounds(a)
    return low, high - low


def _owner(a: np.ndarray) -> np.ndarray:
    """Return the array that owns the memory."""
    while isinstance(a.base, np.ndarray):
        a = a.base
    return a
