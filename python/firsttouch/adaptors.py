"""The factories of allocators that stand on another, their upstream."""

from typing import Literal

from firsttouch import _firsttouch
from firsttouch._firsttouch import Allocator
from firsttouch._internal import validation
from firsttouch._internal.resolve import checked, factory
from firsttouch._internal.validation import Size
from firsttouch.allocators import pages
from firsttouch.custom import AllocatorLike
from firsttouch.placement import pools
from firsttouch.placement.policies import PolicyLike

__all__ = ["filled", "guarded", "limited", "pool", "tracked"]


@factory
def pool(
    upstream: AllocatorLike | None = None,
    *,
    numa: PolicyLike | None = None,
    max_idle: Size | None = None,
    decay: float | None = 1.0,
) -> Allocator:
    """A pool: keeps freed blocks and hands the warmest back.

    ``upstream``: where its memory comes from, any allocator; ``None`` is ``pages(huge="thp")``, and on :func:`pages` a
    pool also splits blocks and joins them. ``numa``: instead of an upstream, huge pages on a node or by a policy, as
    for :func:`pages`; no slabs (``"blocked:0"``), as blocks are used again for other arrays. Requests below 16 KiB go
    to NumPy's own allocator. ``max_idle``: bytes that may be kept idle; ``None`` is a quarter of the machine's or the
    container's memory. ``decay``: seconds until idle memory is given back; ``None`` is never.

    Raises :exc:`ValueError` or :exc:`TypeError` that show what was given and what is accepted.
    """
    stands_on = pools.upstream("pool()", upstream, numa)
    if decay is None:
        return _firsttouch.pool(stands_on, max_idle=max_idle, never=True)
    if isinstance(decay, bool) or not isinstance(decay, (int, float)):
        raise TypeError(f"decay is {type(decay).__name__}: give seconds, 0 or more, or None for never")
    return _firsttouch.pool(stands_on, max_idle=max_idle, decay=float(decay))


@factory
def tracked(upstream: AllocatorLike | None = None, *, lines: bool = False) -> Allocator:
    """Counts what lives, in blocks and bytes, with the peak, all that ever was, and how large requests were.

    ``upstream``: ``None`` is ``pool()``. ``lines``: also notes the line of Python that asked.
    """
    stands_on = pool() if upstream is None else checked(upstream, "tracked()")
    return _firsttouch.tracked(stands_on, validation.flag("lines", lines))


@factory
def limited(upstream: AllocatorLike | None = None, budget: Size | None = None) -> Allocator:
    """At most ``budget`` bytes at a time; a request beyond it is a :exc:`MemoryError`.

    The error of our own constructors says what is in use and what was asked. Where NumPy asks, under ``use()``,
    ``install()`` or ``firsttouch run``, the error is NumPy's, and :func:`last_failure` says the rest.

    ``upstream``: ``None`` is ``pool()``. Bytes count as asked for; what a pool keeps idle does not. ``budget`` is a
    number or text like ``"4 GiB"``, above 0. Budgets nest.

    >>> limited(pool(), "4 GiB")
    limited(pool(pages(huge='thp'), max_idle=None, decay=1.0), 4294967296)
    """
    if budget is None:
        given = "pool()" if upstream is None or isinstance(upstream, (str, int)) else "an allocator"
        raise TypeError(f'limited() needs a budget in bytes behind {given}, as in limited(pool(), "4 GiB")')
    stands_on = pool() if upstream is None else checked(upstream, "limited()")
    allowed = validation.size("budget", budget)
    if allowed == 0:
        raise ValueError("budget=0 would serve no array: give at least 1 byte")
    return _firsttouch.limited(stands_on, allowed)


@factory
def guarded(
    upstream: AllocatorLike | None = None, *, side: Literal["after", "before"] = "after", keep: Size = 0
) -> Allocator:
    """Each array ends at an inaccessible page, so that an overrun stops the process at once.

    ``upstream``: ``None`` is ``pages()``. ``side``: ``"before"`` puts the page before the array. ``keep``: bytes of
    freed arrays that stay inaccessible, so that their use stops the process, too.
    """
    stands_on = pages() if upstream is None else checked(upstream, "guarded()")
    chosen = validation.one_of("side", side, ("after", "before"))
    return _firsttouch.guarded(stands_on, chosen, validation.size("keep", keep))


@factory
def filled(
    upstream: AllocatorLike | None = None, *, on_allocate: int | None = 0xFF, on_free: int | None = None
) -> Allocator:
    """Fills memory with a byte, which exposes whoever reads what was never written, or was freed.

    ``upstream``: ``None`` is ``pool()``. ``on_allocate``: over memory that need not be zero (255 makes floats NaN).
    ``on_free``: over memory that is given back (0 leaves nothing behind). ``None`` leaves memory as it is.
    """
    stands_on = pool() if upstream is None else checked(upstream, "filled()")
    patterns = validation.byte("on_allocate", on_allocate), validation.byte("on_free", on_free)
    return _firsttouch.filled(stands_on, *patterns)
