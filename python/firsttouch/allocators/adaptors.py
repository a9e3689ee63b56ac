"""The adaptors: allocators that stand on another allocator, their upstream."""

from typing import Literal

from _firsttouch_start import memory_errors
from firsttouch._firsttouch import Allocator, make
from firsttouch._internal.validation import Size
from firsttouch.custom import AllocatorLike
from firsttouch.placement.policies import PolicyLike, plain


def pool(
    upstream: AllocatorLike | None = None,
    *,
    numa: PolicyLike | None = None,
    max_idle: Size | None = None,
    decay: float | None = 1.0,
) -> Allocator:
    """Return a pool, which keeps freed blocks and reuses the most recently freed.

    Parameters
    ----------
    upstream : AllocatorLike, optional
        Where the pool's memory comes from. The default is ``pages(huge="thp")``. On :func:`pages`, a pool also splits
        and coalesces blocks.
    numa : int, str or Policy, optional
        Instead of an upstream: huge pages on a node or by a policy, as for :func:`pages`. Slabs (``"blocked:0"``) are
        refused, as blocks are reused for other arrays.
    max_idle : int or str, optional
        Bytes that may stay idle. By default the pool decides, see Notes; where `decay` is set, a quarter of the memory
        of the machine or container.
    decay : float or None, optional
        Seconds after which idle memory is returned to the operating system. ``None`` means never. The default is 1.

    Returns
    -------
    Allocator

    Raises
    ------
    TypeError, ValueError
        If an argument is not one of the above, or both `upstream` and `numa` are given.

    See Also
    --------
    trim : Return idle memory now.
    stats : What a pool holds.

    Notes
    -----
    Memory that stays idle saves the page faults of the next array, at the price of a larger process: `max_idle` bounds
    that price, and `decay` limits how long it is paid. Arrays below 16 KiB are not pooled: NumPy's own stay with its
    allocator, and the pool's constructors take them from the C library.

    With both at their defaults, a pool learns how much to keep: a tenth more than the largest number of bytes that were
    ever in use, and up to a quarter beyond that if memory it returned is soon faulted in again. If memory that decayed
    is needed again shortly after, it stays for 1.8 seconds next time. Any other value of either is obeyed literally.

    Examples
    --------
    >>> ft.pool(max_idle="1 GiB", decay=5.0)
    pool(pages(huge='thp'), max_idle='1 GiB', decay=5.0)

    """
    return make("pool", upstream, numa=plain(numa), max_idle=max_idle, decay=decay)


def tracked(upstream: AllocatorLike | None = None, *, lines: bool = False) -> Allocator:
    """Return an allocator that counts its blocks and bytes, with their peak, total and size distribution.

    Parameters
    ----------
    upstream : AllocatorLike, optional
        Where memory comes from. The default is ``pool()``.
    lines : bool, optional
        Whether the line of Python that made each request is recorded.

    Returns
    -------
    Allocator

    Raises
    ------
    TypeError, ValueError
        If an argument is not one of the above.

    Examples
    --------
    >>> tracker = ft.tracked()
    >>> a = tracker.zeros(1000)
    >>> ft.stats(tracker).in_use
    8000

    """
    return make("tracked", upstream, lines=lines)


def limited(
    upstream: AllocatorLike | None = None, budget: Size | None = None, *, at_most: Size | None = None
) -> Allocator:
    """Return an allocator that raises :exc:`MemoryError` beyond a budget.

    Parameters
    ----------
    upstream : AllocatorLike, optional
        Where memory comes from. ``None`` (default) is ``pool()``. ``limited("auto")`` is short for
        ``limited(budget="auto")``.
    budget : int or str
        Bytes that arrays may hold at a time, more than 0. Text such as ``"4 GiB"`` is accepted. ``"auto"`` is what the
        machine or the container has left now, less a reserve.
    at_most : int or str, optional
        Upper bound in bytes on what ``"auto"`` finds; ``repr`` shows what it found.

    Returns
    -------
    Allocator

    Raises
    ------
    TypeError
        If `budget` is missing or not a size.
    ValueError
        If `budget` is 0, or `at_most` is given without ``"auto"``.

    See Also
    --------
    last_failure : Why a request failed.

    Notes
    -----
    Bytes are counted as requested; what a pool keeps idle is not counted. Budgets nest. The :exc:`MemoryError` of
    firsttouch's constructors states what was requested, what is in use, and which lines made the largest living arrays.
    Under :func:`use` and :func:`install`, NumPy raises its own error; once a budget exists, that error has the same as
    a note, which tracebacks show, and :func:`last_failure` has it as well. Lines are recorded for arrays of 1 MiB and
    more.

    ``"auto"`` is read once, when the allocator is made: the least of what is left of the machine's memory (without
    swap), of the memory cgroup and all its ancestors, of ``RLIMIT_AS`` and of ``RLIMIT_DATA``. From that it keeps a
    reserve of a sixteenth of the bound (at least 64 MiB, at most 4 GiB, and at most half of what is left) for what the
    budget does not see: code, Python's objects, small arrays, page tables, and what other programs take later. Arrays
    count in full, also those whose pages are never touched, such as sparse ``np.zeros``. Each process has a budget of
    its own: bound those that grow at the same time by `at_most`.

    Examples
    --------
    >>> ft.limited(ft.pool(), "4 GiB")
    limited(pool(pages(huge='thp'), max_idle=None, decay=1.0), '4 GiB')
    >>> ft.limited("auto", at_most="1 MiB")
    limited(pool(pages(huge='thp'), max_idle=None, decay=1.0), 'auto', at_most='1 MiB')

    """
    made = make("limited", upstream, budget, at_most=at_most)
    memory_errors.add_reasons()
    return made


def guarded(
    upstream: AllocatorLike | None = None, *, side: Literal["after", "before"] = "after", keep: Size = 0
) -> Allocator:
    """Return an allocator that places each array at an inaccessible page, so that an overrun stops the process.

    Parameters
    ----------
    upstream : AllocatorLike, optional
        Where memory comes from. The default is ``pages()``.
    side : {"after", "before"}, optional
        On which side of the array the inaccessible page lies.
    keep : int or str, optional
        Bytes of freed arrays that stay inaccessible, so that a use after free stops the process as well.

    Returns
    -------
    Allocator

    Raises
    ------
    TypeError, ValueError
        If an argument is not one of the above.

    Notes
    -----
    Overruns are caught at once and at no cost per access, but every array takes two pages and two system calls more.
    Behind an array that does not end at a multiple of its alignment (64 bytes, or that of :func:`aligned` below) lies a
    gap, in which they are found when the array is freed.

    Examples
    --------
    >>> ft.guarded(keep="1 MiB").zeros(3)
    array([0., 0., 0.])

    """
    return make("guarded", upstream, side=side, keep=keep)


def filled(
    upstream: AllocatorLike | None = None, *, on_allocate: int | None = 0xFF, on_free: int | None = None
) -> Allocator:
    """Return an allocator that fills memory with a byte, which exposes reads of uninitialized or freed memory.

    Parameters
    ----------
    upstream : AllocatorLike, optional
        Where memory comes from. The default is ``pool()``.
    on_allocate : int or None, optional
        Byte written over new memory that need not be zero. ``None`` writes nothing. The default, 255, turns floats
        into NaN.
    on_free : int or None, optional
        Byte written over memory that is freed. ``None`` (default) writes nothing.

    Returns
    -------
    Allocator

    Raises
    ------
    TypeError, ValueError
        If an argument is not one of the above.

    Examples
    --------
    >>> ft.filled().empty(3)
    array([nan, nan, nan])

    """
    return make("filled", upstream, on_allocate=on_allocate, on_free=on_free)
