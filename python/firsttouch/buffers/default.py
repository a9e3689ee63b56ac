"""The default buffers of threads and tasks, and buffers around scratch memory of one's own."""

import threading
from collections.abc import Callable, Hashable
from types import TracebackType
from typing import Any

from firsttouch import _firsttouch
from firsttouch._firsttouch import Buffer, FixedBuffer, ScratchBuffer
from firsttouch._internal.resolve import FACTORIES
from firsttouch.buffers import kinds

FACTORIES.update(ScratchBuffer=ScratchBuffer, FixedBuffer=FixedBuffer)  # a buffer is an allocator, too

_NAMED: dict[str, Callable[[], Buffer]] = {"growing": ScratchBuffer, "fixed": FixedBuffer}


def default_buffer(kind: str | Callable[[], Any] | None = None) -> Buffer:
    """The scratch buffer of this thread or, in a running asyncio task, of this task: the same object each time.

    It is made on first use and gone with its thread or task. ``kind``: ``None`` is the one that :func:`scratch` takes;
    ``"growing"`` and ``"fixed"`` are a :class:`ScratchBuffer` and a :class:`FixedBuffer` of 1 MiB; a class or function
    of one's own is called with nothing, once for each thread or task, and makes a buffer or an object with
    ``allocate``, ``mark`` and ``rewind``.

    Raises :exc:`TypeError` or :exc:`ValueError` for anything else.
    """
    if kind is None or kind == "growing" or kind is ScratchBuffer:
        return _firsttouch.home_buffer()
    name, make = kinds.checked_kind(kind, _NAMED, "default_buffer()")
    known: dict[Hashable, Buffer] = _firsttouch.home_kinds()
    if name not in known:
        known[name] = own_buffer(make(), "default_buffer()")
    return known[name]


def own_buffer(given: object, caller: str) -> Buffer:
    """`given`, if it is a buffer, or the buffer around scratch memory of one's own: the same while anyone has it."""
    if isinstance(given, Buffer):
        return given
    return _firsttouch.own_buffer(kinds.checked_own(given, caller))


class using_buffer:
    """Makes ``buffer`` the default one of this thread or task for a block of code; nests.

    Other threads and tasks keep theirs, also those that the block starts.

    >>> with using_buffer(ScratchBuffer("4 MiB")):
    ...     y = decorated_function(x)
    """

    def __init__(self, buffer: object) -> None:
        self._buffer = own_buffer(buffer, "using_buffer()")
        self._homes: dict[int, list[object]] = {}  # by thread: an object may be shared

    def __repr__(self) -> str:
        return f"using_buffer({self._buffer!r})"

    def __enter__(self) -> Buffer:
        self._homes.setdefault(threading.get_ident(), []).append(_firsttouch.home_enter(self._buffer))
        return self._buffer

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _firsttouch.home_leave(self._homes[threading.get_ident()].pop(), self._buffer)
