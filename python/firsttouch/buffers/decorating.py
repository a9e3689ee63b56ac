"""The argument of `scratch`: a buffer, custom scratch memory, or a function to decorate."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

from firsttouch._firsttouch import Buffer
from firsttouch.buffers import default, kinds


def buffer_or_function(given: object) -> Buffer | None:
    """Return the buffer, or `None` for a function, which is checked; raise :exc:`TypeError` for anything else."""
    if kinds.is_own(given):
        return default.own_buffer(given, "scratch()")
    if isinstance(given, type) and (issubclass(given, Buffer) or any(hasattr(given, each) for each in kinds.METHODS)):
        raise TypeError(
            f"scratch() got the class {given.__name__}, not an object of it: did you mean {given.__name__}()?"
        )
    function(given)
    return None


def function(given: object) -> Callable[..., Any]:
    """Return `given` if each call of it can have a scope; otherwise raise a :exc:`TypeError` that explains."""
    if isinstance(given, (classmethod, staticmethod)):
        name = type(given).__name__
        raise TypeError(f"@scratch got a {name}: write it below @{name}, next to the function")
    if isinstance(given, type) or not callable(given):
        what = f"the class {given.__name__}" if isinstance(given, type) else type(given).__name__
        raise TypeError(
            f"scratch() takes a buffer, like ScratchBuffer() or FixedBuffer(), custom scratch memory, or a "
            f"function to decorate, not {what}"
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
    return given


def dress(decorated: Any, given: Callable[..., Any]) -> None:
    """Give a decorated function the name, signature and documentation of the one it wraps."""
    functools.update_wrapper(decorated, given)
