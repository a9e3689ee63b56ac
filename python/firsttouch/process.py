"""The whole process: install, uninstall, trim, and which allocator serves."""

from __future__ import annotations

from typing import NamedTuple

from firsttouch import _firsttouch
from firsttouch._firsttouch import UnsupportedError, get_allocator, is_installed, uninstall
from firsttouch._internal import units
from firsttouch._internal.resolve import given
from firsttouch.context import use
from firsttouch.custom import AllocatorLike

__all__ = [
    "Failure",
    "Stats",
    "UnsupportedError",
    "arrays_only",
    "get_allocator",
    "install",
    "is_installed",
    "last_failure",
    "stats",
    "trim",
    "uninstall",
    "use",
]

UnsupportedError.__module__ = "firsttouch.process"  # where it is public


class Failure(NamedTuple):
    """A request that could not be served; ``str`` of it is the reason.

    See Also
    --------
    firsttouch.last_failure : Returns the last one.

    """

    asked: int
    """Bytes requested."""
    limit: str
    """Name of the limit that was exceeded: ``RLIMIT_AS``, ``vm.overcommit_memory=2``, ``limited``, ..."""
    reason: str
    """What was requested, what was available, and which limit was exceeded, in a sentence."""

    def __str__(self) -> str:
        return self.reason


class Stats(NamedTuple):
    """Statistics of an allocator, in bytes unless noted; named as in jemalloc where it has them.

    See Also
    --------
    firsttouch.stats : Returns them.

    """

    in_use: int
    """Requested by live blocks."""
    active: int
    """In spans that hold live blocks."""
    idle: int
    """Kept for the next request; may be resident."""
    mapped: int
    """Address space that is mapped."""
    retained: int
    """Address space that is mapped without memory behind it."""
    peak_in_use: int
    """Peak of `in_use`: exact for one thread, to 1 MiB per processor for several."""
    peak_active: int
    """Peak of `active`, likewise."""
    peak_held: int
    """Peak of `active` and `idle` together."""
    blocks: int
    """Number of live blocks."""
    allocations: int
    """Number of requests served."""
    recycled: int
    """Number of requests served entirely from idle memory."""
    allocated_bytes: int
    """Requested by all requests served."""
    recycled_bytes: int
    """Part of the spans served that was idle memory."""
    first_touched_bytes: int
    """Part of the spans served that was fresh: the kernel faults in what of it is touched."""
    first_touched_small_bytes: int
    """Part of `first_touched_bytes` on base pages."""
    first_touched_huge_bytes: int
    """Part of `first_touched_bytes` where huge pages were requested."""
    purged_bytes: int
    """Returned to the operating system."""
    refaulted_bytes: int
    """Part of `purged_bytes` that was needed again, and faulted in again: it was returned too early."""
    failures: int
    """Number of requests that failed."""
    small_limit: int
    """Size below which it leaves NumPy's arrays to NumPy's own allocator, and counts none: 0 but for pools."""

    def _repr_html_(self) -> str:
        return units.table("statistics", ((name, f"{value:,}") for name, value in self._asdict().items()))


def install(
    allocator: AllocatorLike | None = None,
    *,
    arrays_only: bool = False,
    trim_c_library: bool = False,
) -> None:
    """Serve new arrays and Python's other large blocks from an allocator, in all threads, also those already running.

    Others are of ``bytes``, ``bytearray``, lists, dictionaries, strings, from `small_limit` on (see :func:`stats`).

    Parameters
    ----------
    allocator : AllocatorLike, optional
        Allocator to install. The default is the process's own pool.
    arrays_only : bool, optional
        Leave what is no array to Python. This is so, too, where an allocator serves requests of every size, as
        :func:`guarded` does, and where something else has wrapped Python's allocator before, as ``tracemalloc`` does:
        :func:`firsttouch.process.arrays_only` says why.
    trim_c_library : bool, optional
        Also return to the operating system what the C library's ``malloc`` keeps for no use, from now on: of small
        objects, and of other libraries; and ask Arrow's pool to do so, where pyarrow is loaded. ``firsttouch run``
        does. It takes at most a hundredth of the time, and is done for glibc alone.

    Raises
    ------
    TypeError
        If `allocator` is not an allocator, or is NumPy's own or written in Python, or stands on one that is.
    UnsupportedError
        If NumPy's memory handler is not as expected.

    See Also
    --------
    use : Choose an allocator for a block of code.
    uninstall : Undo this.
    is_installed : Whether an allocator is installed.

    Notes
    -----
    Existing arrays stay as they are. Installing again replaces the allocator. What was installed is never dropped, as
    any code may still have arrays of it: install the same allocator again, rather than a new one each time.

    For arrays NumPy offers no public way to do this: one pointer behind its default memory handler is swapped, after
    everything about it has been checked. For all else ``PyMem_SetAllocator`` wraps Python's own functions, and is never
    undone, as blocks may live. Libraries should leave the choice to the program.

    Examples
    --------
    >>> ft.install("pool(decay=5.0)")
    >>> ft.get_allocator()
    pool(decay=5.0)
    >>> ft.uninstall()

    """
    named = given(allocator, "install()")
    _firsttouch.install(named, arrays_only, trim_c_library)


def arrays_only() -> str | None:
    """Return why the installed allocator serves arrays alone.

    Returns
    -------
    str or None
        ``None`` if it serves all large blocks of Python's, or if no allocator is installed.

    See Also
    --------
    install : Serve new arrays and Python's other large blocks.

    Examples
    --------
    >>> ft.install(arrays_only=True)
    >>> ft.process.arrays_only()
    'install(arrays_only=True) asked for it'
    >>> ft.uninstall()

    """
    return _firsttouch.arrays_only() if is_installed() else None


def stats(allocator: AllocatorLike | None = None) -> Stats:
    """Return an allocator's statistics.

    Parameters
    ----------
    allocator : AllocatorLike, optional
        Allocator to ask. The default is the installed one or, if none is, the process's own pool.

    Returns
    -------
    firsttouch.process.Stats
        All zero if the allocator keeps no statistics.

    Raises
    ------
    TypeError, ValueError
        If `allocator` is not an allocator.

    See Also
    --------
    measure : Figures of a block of code.

    Examples
    --------
    >>> pool = ft.pool()
    >>> a = pool.zeros((1000, 1000))
    >>> ft.stats(pool).in_use
    8000000

    """
    return Stats(**_firsttouch.stats(given(allocator, "stats()")))


def trim(allocator: AllocatorLike | None = None) -> int:
    """Return idle memory to the operating system now.

    Parameters
    ----------
    allocator : AllocatorLike, optional
        Allocator to trim. The default is the installed one or, if none is, the process's own pool, and with it what the
        C library keeps, and Arrow's pool where pyarrow is loaded.

    Returns
    -------
    int
        Bytes returned to the operating system, as far as they were counted: Arrow does not say.

    Raises
    ------
    TypeError, ValueError
        If `allocator` is not an allocator.

    Examples
    --------
    >>> pool = ft.pool(decay=None)
    >>> a = pool.zeros(10**6)
    >>> del a
    >>> ft.trim(pool) >= 8_000_000
    True

    """
    returned = _firsttouch.trim(given(allocator, "trim()"))
    if allocator is None:
        returned += _firsttouch.trim_c_library()
    return returned


def last_failure() -> Failure | None:
    """Return why the last request failed that firsttouch could not serve.

    Returns
    -------
    firsttouch.process.Failure or None
        ``None`` if no request has failed.

    Notes
    -----
    NumPy replaces the error of an allocator by its own, which does not say which limit was exceeded. This does.

    Examples
    --------
    >>> with ft.use(ft.limited(ft.pool(), "1 MiB")):
    ...     try:
    ...         np.zeros(10**6)
    ...     except MemoryError as error:
    ...         print(error)
    Unable to allocate 7.63 MiB for an array with shape (1000000,) and data type float64
    >>> ft.last_failure().limit
    'limited'

    """
    found = _firsttouch.last_failure()
    return None if found is None else Failure(*found)
