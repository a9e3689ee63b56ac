"""Scratch memory: buffers, the scopes on them, and what a decorated function warns of or raises."""

import functools
import inspect
import os
import sys
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import Any

from firsttouch import _firsttouch
from firsttouch._firsttouch import Buffer, FixedBuffer, Scope, ScratchBuffer, scratch
from firsttouch._internal import units

__all__ = [
    "Buffer",
    "EscapeWarning",
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


class using_buffer:
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

    def __init__(self, buffer: Buffer) -> None:
        if not isinstance(buffer, Buffer):
            raise TypeError(
                f"using_buffer() takes a buffer, like ScratchBuffer() or FixedBuffer(), not {_what(buffer)}"
            )
        self._buffer = buffer
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


class EscapeWarning(RuntimeWarning):
    """Arrays that were made in a scope outlive it.

    See Also
    --------
    firsttouch.scratch : Warns of them with ``warn=True``.

    """


_SHOWN = 5
_PACKAGE = os.path.dirname(__file__)


def _report(function: Callable[..., Any], left: list[tuple[int, int, str | None]], buffer: str) -> None:
    """Warn of blocks (address, bytes, line if known) that outlived a decorated call and are not in its result."""
    left = sorted(left, key=lambda block: -block[1])
    shown = [
        f"{units.size(nbytes)} " + (f"made at {line}" if line else f"at {address:#x}")
        for address, nbytes, line in left[:_SHOWN]
    ]
    if left[_SHOWN:]:
        shown.append(f"and {len(left) - _SHOWN} more")
    name = getattr(function, "__qualname__", type(function).__name__)
    arrays, they, them = ("an array", "it stays valid and keeps", "it")
    if len(left) > 1:
        arrays, they, them = (f"{len(left)} arrays", "they stay valid and keep", "them")
    message = (
        f"{arrays} made in {name}() outlived it in {buffer}: {'; '.join(shown)}"
        f"{'' if left[0][2] else ' (a buffer with debug=True names the lines that made them)'}; {they} a chunk of the "
        f"buffer: return {them}, or copy {them} before storing"
    )
    warnings.warn(message, EscapeWarning, stacklevel=_outside())


def _outside() -> int:
    """Return how many frames up from the caller the first one outside this package is."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level


def _what(given: object) -> str:
    return f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__


def _function(given: object) -> None:
    """Raise a :exc:`TypeError` that explains, unless each call of `given` can have a scope."""
    if isinstance(given, type) and issubclass(given, Buffer):
        raise TypeError(f"scratch() got the class {given.__name__}, not a buffer: did you mean {given.__name__}()?")
    if isinstance(given, (classmethod, staticmethod)):
        name = type(given).__name__
        raise TypeError(f"@scratch got a {name}: write it below @{name}, next to the function")
    if isinstance(given, type) or not callable(given):
        raise TypeError(
            "scratch() takes a buffer, like ScratchBuffer() or FixedBuffer(), or a function to decorate, not "
            f"{_what(given)}"
        )
    inner = inspect.unwrap(given)
    while isinstance(inner, functools.partial):
        inner = inner.func
    name = getattr(inner, "__name__", type(inner).__name__)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise TypeError(
            f"@scratch cannot decorate the generator {name}: between its yields the caller would run on its scratch "
            "memory; put `with scratch():` around the parts between yields"
        )
    if inspect.iscoroutinefunction(inner):
        raise TypeError(
            f"@scratch cannot decorate the coroutine {name}: while it waits, other tasks would run in its scope; put "
            "`with scratch():` around the parts between awaits"
        )


def _numba_type(_buffer: object) -> Any:
    """Return the Numba type of a buffer. Only Numba asks for it, and only then is support for it loaded."""
    from firsttouch.numba import scratch_buffer

    return scratch_buffer


_firsttouch.register(function=_function, dress=functools.update_wrapper, report=_report)
if not hasattr(Buffer, "_numba_type_"):
    Buffer._numba_type_ = property(_numba_type)  # type: ignore[attr-defined]
