"""An allocator for a block of code."""

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

from firsttouch import _firsttouch
from firsttouch._firsttouch import Allocator
from firsttouch.allocators import checked

P = ParamSpec("P")
R = TypeVar("R")


class use:
    """Lets an allocator serve the arrays of a block, in this context (thread, task); a decorator too.

    ``None`` is the process's own pool, which is warm at the second entry. Nests; arrays outlive the block and are
    freed by who made them. New threads do not inherit it: see :func:`install`.

    >>> with use():
    ...     y = (x - x.mean()) / x.std()
    """

    def __init__(self, allocator: Allocator | None = None) -> None:
        if allocator is None:
            self._allocator = _firsttouch.default_pool() if _firsttouch.BACKEND else _firsttouch.numpy_default()
        else:
            self._allocator = checked(allocator, "use()")
        self._before: ContextVar[tuple[object, ...]] = ContextVar("before", default=())

    def __repr__(self) -> str:
        return f"use({self._allocator!r})"

    def __enter__(self) -> Allocator:
        self._before.set((*self._before.get(), _firsttouch.enter(self._allocator)))
        return self._allocator

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        *outer, before = self._before.get()
        self._before.set(tuple(outer))
        _firsttouch.leave(before)

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(
                f"use() can't decorate the generator {function.__name__}: between its yields the caller would run on "
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
