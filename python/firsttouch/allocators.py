"""The factories of allocators, named after what they make."""

from typing import Literal

from firsttouch import _firsttouch
from firsttouch._firsttouch import Allocator

Size = int | str
"""Bytes as a number, or text like ``"64 KiB"`` or ``"4 GB"``."""


def checked(allocator: object, caller: str) -> Allocator:
    """``allocator`` itself, if it is one; otherwise a :exc:`TypeError` that names it and says what to give."""
    if isinstance(allocator, Allocator):
        return allocator
    name = getattr(allocator, "__name__", None)
    if name in _FACTORIES and callable(allocator):
        raise TypeError(f"{caller} got the function firsttouch.{name}: did you mean firsttouch.{name}()?")
    raise TypeError(
        f"{caller} takes an allocator, like firsttouch.pool(), not {type(allocator).__name__}: {allocator!r:.80}"
    )


def pool(upstream: Allocator | None = None, *, max_idle: Size | None = None, decay: float | None = 1.0) -> Allocator:
    """A pool: keeps freed blocks and hands the warmest back.

    ``upstream``: where its memory comes from, :func:`pages`; ``None`` is ``pages(huge="thp")``. Requests below 16 KiB
    go to NumPy's own allocator. ``max_idle``: bytes that may be kept idle; ``None`` is a quarter of the machine's or
    the container's memory. ``decay``: seconds until idle memory is given back; ``None`` is never.

    Raises :exc:`ValueError` or :exc:`TypeError` that show what was given and what is accepted.
    """
    stands_on = None if upstream is None else checked(upstream, "pool()")
    if decay is None:
        return _firsttouch.pool(stands_on, max_idle=max_idle, never=True)
    if isinstance(decay, bool) or not isinstance(decay, (int, float)):
        raise TypeError(f"decay is {type(decay).__name__}: give seconds, 0 or more, or None for never")
    return _firsttouch.pool(stands_on, max_idle=max_idle, decay=float(decay))


def pages(huge: Literal[False, "thp"] = False) -> Allocator:
    """Anonymous memory, fresh from the system for every array and given back at once.

    ``huge``: ``"thp"`` asks for transparent huge pages, and aligns to them, from one huge page on.
    """
    return _firsttouch.pages(huge)


def malloc() -> Allocator:
    """The C library's ``malloc``, aligned to 64 bytes. For :func:`use`; :func:`install` can't take it."""
    return _firsttouch.malloc()


def calloc() -> Allocator:
    """The C library's ``calloc``: arrays read zero, ``np.empty`` included. For :func:`use`."""
    return _firsttouch.calloc()


def aligned(alignment: Size) -> Allocator:
    """Memory at multiples of ``alignment`` bytes, a power of two up to 1 GiB; lazily zeroed. For :func:`use`."""
    return _firsttouch.aligned(alignment)


def numpy_default() -> Allocator:
    """NumPy's own allocator, to opt out in a block: ``with use(numpy_default()): ...``."""
    return _firsttouch.numpy_default()


_FACTORIES = {"pool", "pages", "malloc", "calloc", "aligned", "numpy_default"}
