"""Scratch memory: buffers, and the scopes on them."""

import functools
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from firsttouch import _firsttouch
from firsttouch._firsttouch import Buffer, FixedBuffer, Scope, ScratchBuffer, scratch

__all__ = [
    "Buffer",
    "FixedBuffer",
    "Scope",
    "ScratchBuffer",
    "default_buffer",
    "scratch",
    "using_buffer",
]


def default_buffer(kind: str | type[Buffer] | None = None) -> Buffer:
    """Return the scratch buffer of this thread or, in a running asyncio task, of this task.

    Parameters
    ----------
    kind : {"growing", "fixed"} or class, optional
        Kind of buffer. ``"growing"`` (default) is a :class:`ScratchBuffer`, ``"fixed"`` a :class:`FixedBuffer` of
        1 MiB; the classes themselves are accepted, too.

    Returns
    -------
    firsttouch.buffers.Buffer
        The same object each time. It is made on first use and goes with its thread or task.

    Raises
    ------
    ValueError
        If `kind` is not one of the above.

    See Also
    --------
    using_buffer : Replace it for a block of code.
    scratch : Uses it by default.

    Examples
    --------
    >>> ft.buffers.default_buffer() is ft.buffers.default_buffer("growing")
    True

    """
    if kind is None or kind == "growing" or kind is ScratchBuffer:
        return _firsttouch.home_buffer(False)
    if kind == "fixed" or kind is FixedBuffer:
        return _firsttouch.home_buffer(True)
    raise ValueError(f"default_buffer(): kind={kind!r:.60}: give 'growing' or 'fixed'")


@contextmanager
def using_buffer(buffer: Buffer) -> Iterator[Buffer]:
    """Make a buffer the default one of this thread or task for a block of code.

    Entering the block returns the buffer.

    Parameters
    ----------
    buffer : Buffer
        Buffer to use.

    Raises
    ------
    TypeError
        If `buffer` is not one.

    See Also
    --------
    default_buffer : Return the default buffer.

    Notes
    -----
    Blocks nest. Other threads and tasks keep their own, including those started in the block.

    Examples
    --------
    >>> with ft.buffers.using_buffer(ft.ScratchBuffer("4 MiB")) as buffer:
    ...     ft.buffers.default_buffer() is buffer
    True

    """
    home = _firsttouch.home_enter(buffer)
    try:
        yield buffer
    finally:
        _firsttouch.home_leave(home, buffer)  # of whoever entered, even where a generator ends elsewhere


def _function(given: object) -> None:
    """Raise a :exc:`TypeError` that explains, unless each call of `given` can have a scope."""
    if isinstance(given, type) or not callable(given):
        raise TypeError(f"scratch() takes a buffer, like ScratchBuffer(), or a function to decorate, not {given!r:.60}")
    inner = inspect.unwrap(given)
    if any(is_suspended(inner) for is_suspended in _SUSPENDED):
        raise TypeError(
            f"@scratch cannot decorate {given!r:.60}, a generator or coroutine: while it is suspended, others would "
            "run in its scope; put `with scratch():` around the parts in between"
        )


_SUSPENDED = (inspect.isgeneratorfunction, inspect.isasyncgenfunction, inspect.iscoroutinefunction)


def _numba_type(_buffer: object) -> Any:
    """Return the Numba type of a buffer. Only Numba asks for it, and only then is support for it loaded."""
    from firsttouch.numba import scratch_buffer

    return scratch_buffer


_firsttouch.register(function=_function, dress=functools.update_wrapper)
if not hasattr(Buffer, "_numba_type_"):
    Buffer._numba_type_ = property(_numba_type)  # type: ignore[attr-defined]
