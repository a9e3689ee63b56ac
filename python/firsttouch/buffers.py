"""Scratch memory: buffers, and the scopes on them."""

import functools
import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import MethodType
from typing import Any, ParamSpec, TypeVar, overload

import numpy as np

from firsttouch import _firsttouch
from firsttouch._firsttouch import Buffer, FixedBuffer, Scope, ScratchBuffer, default_buffer

P = ParamSpec("P")
R = TypeVar("R")

__all__ = [
    "Buffer",
    "FixedBuffer",
    "Scope",
    "ScratchBuffer",
    "default_buffer",
    "scratch",
    "using_buffer",
]


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
    if not isinstance(buffer, Buffer):
        raise TypeError(f"using_buffer() takes a buffer, like ScratchBuffer(), not {buffer!r:.60}")
    home = _firsttouch.home()
    try:
        home.insert(0, buffer)  # within: Ctrl-C may come right behind
        yield buffer
    finally:  # of the context that entered, even where a generator ends elsewhere
        if buffer in home:  # there may have been no memory to enter it
            home.remove(buffer)


class _Scopes(_firsttouch.Scopes):
    """Opens a scope for each block of code, and decorates functions."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"scratch({'' if self.buffer is None else repr(self.buffer)})"

    def __call__(self, function: Callable[P, R], /) -> Callable[P, R]:
        return _decorated(function, self.buffer)


def _decorated(function: Callable[P, R], buffer: Buffer | None) -> Callable[P, R]:
    """Return the function with a scope for each call; raise a :exc:`TypeError` that explains unless it can have one."""
    if isinstance(function, type) or not callable(function):
        raise TypeError(
            f"scratch() takes a buffer, like ScratchBuffer(), or a function to decorate, not {function!r:.60}"
        )
    inner = inspect.unwrap(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner) or inspect.iscoroutinefunction(inner):
        raise TypeError(
            f"@scratch cannot decorate {function!r:.60}, a generator or coroutine: while it is suspended, others would "
            "run in its scope; put `with scratch():` around the parts in between"
        )

    made: Callable[P, R] = functools.update_wrapper(_Function(function, buffer, _copied), function)
    return made


class _Function(_firsttouch.ScratchFunction):
    """A function with a scope for each call; a method where it stands in a class."""

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> str:
        return str(self.__qualname__)  # type: ignore[attr-defined]

    def __repr__(self) -> str:
        return f"scratch({self.__wrapped__!r})"  # type: ignore[attr-defined]


def _items(value: Any) -> list[tuple[Any, Any]]:
    """Return what stands in a tuple, a list or a dict, each with where. Other threads may change it meanwhile."""
    if type(value) is dict:
        return list(value.items())
    return list(enumerate(value)) if type(value) in (tuple, list) else []


def _copied(value: Any, mark: _firsttouch.CallMark) -> Any:
    """Return a result with copies of the arrays that a call made in chunks of its buffer, which they would keep.

    An array is copied if it pins a chunk, no other array in the result shares its memory, and its copy is no larger
    than that. It is the result, or stands in a tuple, a list or a dict: the latter two stay the same objects.
    """
    items = [(0, value)] if type(value) is np.ndarray else _items(value)
    inner = [part for _, item in items if item is not value for _, part in _items(item)]
    if [part for part in inner if _items(part)]:
        return value  # views of the arrays may lie deeper than is looked
    candidates = {id(item): (item, mark.pinned(item)) for _, item in items if type(item) is np.ndarray}
    pinned = [owner for _, owner in candidates.values()]
    pinned += [mark.pinned(part) for part in inner if type(part) is np.ndarray]
    # No generator: CPython 3.13.0 crashes if it has no memory for one.
    sharing = Counter([id(owner) for owner in pinned])
    copies: dict[int, np.ndarray] = {}
    for number, (array, owner) in candidates.items():
        if owner is not None and sharing[id(owner)] == 1 and array.nbytes <= owner.nbytes:
            copies[number] = _copy(array)
    return _replaced(value, copies)


def _replaced(value: Any, copies: dict[int, np.ndarray]) -> Any:
    """Return a result with copies instead of the arrays with these identities."""
    if type(value) is np.ndarray:
        return copies.get(id(value), value)
    if type(value) is tuple:
        return tuple([copies.get(id(item), item) for item in value]) if copies else value
    for at, item in _items(value):
        if id(item) in copies:
            value[at] = copies[id(item)]
    return value


def _copy(array: np.ndarray) -> np.ndarray:
    copy = array.copy("K")
    if not array.flags.writeable:
        copy.flags.writeable = False
    return copy


@overload
def scratch(buffer: Buffer | None = None, /) -> _Scopes: ...
@overload
def scratch(function: Callable[P, R], /) -> Callable[P, R]: ...
def scratch(buffer_or_function: Any = None, /) -> Any:
    """Use scratch memory for a block of code, or for each call of a function.

    ``with scratch() as s:`` serves the arrays of 1 KiB and more that NumPy makes in the block, and all that `s` makes.
    ``@scratch`` gives each call of a function a scope of its own.

    Parameters
    ----------
    buffer_or_function : Buffer or callable, optional
        Buffer to use, or the function to decorate. The default buffer is that of this thread or asyncio task.

    Returns
    -------
    context manager or callable
        Without a function, what opens scopes, and decorates functions.

    Raises
    ------
    TypeError
        If an argument is not one of the above, or the function is a generator or coroutine function.

    See Also
    --------
    ScratchBuffer, FixedBuffer : The buffers.
    default_buffer : The buffer of this thread or task.

    Notes
    -----
    Allocating bumps a pointer. Arrays of an eighth of a chunk and more (16 KiB) come from the pool, which is as fast
    for them. An array that outlives the scope is never taken away: its chunk is not used again until it dies.

    Examples
    --------
    >>> x = np.linspace(0, 1, 1000)
    >>> with ft.scratch() as s:
    ...     work = s.empty(1000)
    ...     y = np.sqrt(x, out=work) + 1

    >>> @ft.scratch
    ... def smooth(x):
    ...     left, right = np.roll(x, 1), np.roll(x, -1)
    ...     return (left + 2 * x + right) / 4
    >>> smooth(x).shape
    (1000,)

    """
    if buffer_or_function is None or isinstance(buffer_or_function, Buffer):
        return _Scopes(buffer_or_function)
    return _decorated(buffer_or_function, None)


def _numba_type(_buffer: object) -> Any:
    """Return the Numba type of a buffer. Only Numba asks for it, and only then is support for it loaded."""
    from firsttouch.numba import scratch_buffer

    return scratch_buffer


if not hasattr(Buffer, "_numba_type_"):
    Buffer._numba_type_ = property(_numba_type)  # type: ignore[attr-defined]
