"""NumPy's ways to make an array, with a choice of memory: ``firsttouch.zeros`` is a drop-in for ``numpy.zeros``.

Each function accepts what NumPy's function of the same name accepts, and `allocator`. Every allocator has them as
methods: ``ft.aligned(64).zeros((4, 4), np.float32)``. Arrays are aligned to 64 bytes, or as the
allocator guarantees; those of pools from 16 KiB on.

Errors are NumPy's, except that a :exc:`MemoryError` states what was requested, what was available and which limit was
exceeded. Exceptions of a custom allocator are propagated.
"""

import inspect
from collections.abc import Callable
from typing import Any

from firsttouch._constructing import NUMPYS, signature
from firsttouch._firsttouch import Allocator
from firsttouch.arrays.like import empty_like, full_like, ones_like, zeros_like
from firsttouch.arrays.shapes import empty, eye, full, ones, zeros
from firsttouch.arrays.values import arange, array, asarray, copy, fromiter, linspace

__all__ = [
    "arange",
    "array",
    "asarray",
    "copy",
    "empty",
    "empty_like",
    "eye",
    "fromiter",
    "full",
    "full_like",
    "linspace",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]


def _method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Allocator, *args: Any, **kwargs: Any) -> Any:
        return function(*args, allocator=self, **kwargs)

    takes = inspect.signature(function)
    one = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    rest = [parameter for parameter in takes.parameters.values() if parameter.name != "allocator"]
    method.__signature__ = takes.replace(parameters=[one, *rest])  # type: ignore[attr-defined]
    method.__name__, method.__qualname__ = name, f"Allocator.{name}"
    summary = (function.__doc__ or "").partition("\n")[0]
    method.__module__ = "firsttouch"
    method.__doc__ = (
        f"{summary}\n\nThe memory is this allocator's. Refer to :func:`firsttouch.{name}` for full documentation."
    )
    return method


def _complete() -> None:
    """Give the functions NumPy's signatures, and make the methods."""
    for name in __all__:
        function = globals()[name]
        function.__signature__, function.__module__ = signature(NUMPYS[name], name), "firsttouch"
        METHODS[name] = _method(name, function)


METHODS: dict[str, Callable[..., Any]] = {}
"""The functions as methods of an allocator."""

_complete()
