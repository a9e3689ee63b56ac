"""An allocator for a block of code."""

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from firsttouch import _firsttouch
from firsttouch._firsttouch import Allocator
from firsttouch._internal.resolve import given
from firsttouch.custom import AllocatorLike

__all__ = ["use"]

P = ParamSpec("P")
R = TypeVar("R")


class use:
    """Serve the arrays of a block of code, or of a decorated function, from an allocator.

    Entering the block returns the allocator. The choice holds in this context: the thread or asyncio task.

    Parameters
    ----------
    allocator : AllocatorLike, optional
        Allocator to use. The default is the process's own pool, which stays warm from one block to the next.

    Raises
    ------
    TypeError, ValueError
        If `allocator` is not an allocator.

    See Also
    --------
    install : Choose an allocator for the whole process.

    Notes
    -----
    Blocks nest. Arrays may outlive the block and are freed by the allocator that created them. New threads do not
    inherit the choice, except where Python lets them inherit the context (``sys.flags.thread_inherit_context``, the
    default of free-threaded Python); :func:`install` serves all threads.

    Examples
    --------
    >>> x = np.arange(5.0)
    >>> with ft.use():
    ...     y = (x - x.mean()) / x.std()

    >>> @ft.use("aligned(4096)")
    ... def load():
    ...     return np.empty(100)
    >>> ft.get_allocator(load())
    aligned(4096)

    """

    def __init__(self, allocator: AllocatorLike | None = None) -> None:
        self._allocator = given(allocator, "use()") or _firsttouch.default_pool()

    def __repr__(self) -> str:
        return f"use({self._allocator!r})"

    def __enter__(self) -> Allocator:
        before = _firsttouch.enter(self._allocator)
        try:
            _entered.set((*_entered.get(), (self, before)))
        except MemoryError:
            _firsttouch.leave(before)
            raise
        return self._allocator

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        entered = _entered.get()
        at = len(entered) - 1  # not a generator: CPython 3.13.0 crashes if it has no memory for one
        while at >= 0 and entered[at][0] is not self:
            at -= 1
        if at < 0:
            return  # entered in another context, which is out of reach; nothing to restore here
        before, inner = entered[at][1], entered[at + 1 :]
        if inner:
            # Blocks may end out of order (generators): the inner one continues, and will restore what was outside this
            # one.
            inner = ((inner[0][0], before), *inner[1:])
        else:
            _firsttouch.leave(before)
        _entered.set((*entered[:at], *inner))

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Decorate a function: each call runs in a block of its own.

        Parameters
        ----------
        function : callable
            Function or coroutine function.

        Returns
        -------
        callable

        Raises
        ------
        TypeError
            If `function` is a generator function.

        """
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"use() cannot decorate the generator {function.__name__}: between its yields the caller would run on "
                "its allocator; put `with use(...):` around the parts between yields"
            )
        if inspect.iscoroutinefunction(function):

            @functools.wraps(function)
            async def awaited(*args: P.args, **kwargs: P.kwargs) -> Any:
                with use(self._allocator):
                    return await function(*args, **kwargs)

            return awaited  # type: ignore[return-value]

        @functools.wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            with use(self._allocator):
                return function(*args, **kwargs)

        return called


_entered: ContextVar[tuple[tuple[use, object], ...]] = ContextVar("entered", default=())
"""The open blocks of this context, the innermost last, with what served before each. One variable for all blocks, as
a context never forgets a variable."""
