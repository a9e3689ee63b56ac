"""The default buffers of threads and tasks, and buffers on custom scratch memory."""

from collections.abc import Callable, Hashable
from types import TracebackType
from typing import Any

from firsttouch import _firsttouch
from firsttouch._firsttouch import Buffer, FixedBuffer, ScratchBuffer
from firsttouch.buffers import kinds

_NAMED: dict[str, Callable[[], Buffer]] = {"growing": ScratchBuffer, "fixed": FixedBuffer}


def default_buffer(kind: str | Callable[[], Any] | None = None) -> Buffer:
    """Return the scratch buffer of this thread or, in a running asyncio task, of this task.

    Parameters
    ----------
    kind : {"growing", "fixed"} or callable, optional
        Kind of buffer. ``"growing"`` (default) is a :class:`ScratchBuffer`, ``"fixed"`` a :class:`FixedBuffer` of
        1 MiB. A class or function is called without arguments, once per thread or task, and returns a buffer or an
        object that implements ``allocate``, ``mark`` and ``rewind``.

    Returns
    -------
    firsttouch.buffers.Buffer
        The same object each time. It is made on first use and goes with its thread or task.

    Raises
    ------
    TypeError, ValueError
        If `kind` is not one of the above.

    See Also
    --------
    using_buffer : Replace it for a block of code.
    scratch : Uses it by default.

    Examples
    --------
    >>> ft.default_buffer() is ft.default_buffer("growing")
    True

    """
    if kind is None or kind == "growing" or kind is ScratchBuffer:
        return _firsttouch.home_buffer()
    name, make = kinds.checked_kind(kind, _NAMED, "default_buffer()")
    known: dict[Hashable, Buffer] = _firsttouch.home_kinds()
    if name not in known:
        known[name] = own_buffer(make(), "default_buffer()")
    return known[name]


def own_buffer(given: object, caller: str) -> Buffer:
    """Return `given` if it is a buffer, or the one buffer on this custom scratch memory."""
    if isinstance(given, Buffer):
        return given
    return _firsttouch.own_buffer(kinds.checked_own(given, caller))


class using_buffer:
    """Make a buffer the default one of this thread or task for a block of code.

    Entering the block returns the buffer.

    Parameters
    ----------
    buffer : Buffer or OwnScratch
        Buffer to use, or custom scratch memory.

    Raises
    ------
    TypeError
        If `buffer` is neither.

    See Also
    --------
    default_buffer : Return the default buffer.

    Notes
    -----
    Blocks nest. Other threads and tasks keep their own, including those started in the block.

    Examples
    --------
    >>> with ft.using_buffer(ft.ScratchBuffer("4 MiB")) as buffer:
    ...     ft.default_buffer() is buffer
    True

    """

    def __init__(self, buffer: object) -> None:
        self._buffer = own_buffer(buffer, "using_buffer()")
        self._homes: list[object] = []  # threads and tasks may share this object

    def __repr__(self) -> str:
        return f"using_buffer({self._buffer!r})"

    def __enter__(self) -> Buffer:
        self._homes.append(_firsttouch.home_enter(self._buffer))
        return self._buffer

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not self._homes:
            raise RuntimeError("this using_buffer() was not entered, or has ended already")
        home = _firsttouch.home()
        try:
            self._homes.remove(home)
        except ValueError:  # a generator that ends elsewhere
            home = self._homes.pop()
        _firsttouch.home_leave(home, self._buffer)
