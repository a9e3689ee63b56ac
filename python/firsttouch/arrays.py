"""NumPy's ways to make an array, with a choice of memory: ``firsttouch.zeros`` is a drop-in for ``numpy.zeros``.

Each function accepts what NumPy's function of the same name accepts, and `allocator`. Every allocator has them as
methods: ``ft.aligned(64).zeros((4, 4), np.float32)``. Arrays are aligned to 64 bytes, or as the allocator guarantees;
those of pools from 16 KiB on. Other functions of NumPy take their memory from an allocator in a block:
``with ft.use(allocator): np.arange(10)``.

Errors are NumPy's, except that a :exc:`MemoryError` states what was requested, what was available and which limit was
exceeded. Exceptions of a custom allocator are propagated.
"""

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from firsttouch import _firsttouch
from firsttouch._constructing import made, satisfying, signature
from firsttouch._firsttouch import Allocator


class _Row(NamedTuple):
    """What a docstring says about one of NumPy's functions."""

    returns: str
    parameters: str
    others: str
    example: str
    notes: str = ""


_SHAPE = "shape : int or tuple of int\n    Shape of the new array."
_LIKE = "a : array_like\n    Array whose shape, dtype and memory order are used."
_FILL = "fill_value : scalar or array_like\n    Fill value, which is broadcast to the shape."

_TABLE = {
    "array": _Row(
        "an array from any object that NumPy can convert",
        "object : array_like\n    Array, sequence, nested sequence or scalar.\n"
        "copy : bool or None, optional\n    ``True`` (default) always copies. ``None`` copies if necessary, which\n"
        "    includes memory that is not the allocator's. ``False`` raises\n"
        "    :exc:`ValueError` if a copy is necessary.",
        "dtype, order, subok, ndmin, ndmax, like",
        '>>> ft.array([[1, 2], [3, 4]], float, allocator="aligned(4096)")\narray([[1., 2.],\n       [3., 4.]])',
        "`ndmax` is NumPy's from 2.4 on.",
    ),
    "empty": _Row(
        "a new uninitialized array of the given shape and type",
        _SHAPE,
        "dtype, order, device, like",
        '>>> ft.empty((2, 3), np.float32, allocator="aligned(4096)").shape\n(2, 3)',
        "From ``calloc()`` the values are zero.",
    ),
    "empty_like": _Row(
        "a new uninitialized array with the shape and type of another",
        _LIKE.replace("a :", "prototype :"),
        "dtype, order, subok, shape, device",
        '>>> ft.empty_like(np.ones((2, 3)), allocator="pool()").shape\n(2, 3)',
    ),
    "full": _Row(
        "a new array of the given shape and type, filled with a value",
        f"{_SHAPE}\n{_FILL}",
        "dtype, order, device, like",
        '>>> ft.full(3, 0.5, allocator="mimalloc()")\narray([0.5, 0.5, 0.5])',
    ),
    "full_like": _Row(
        "an array of a value with the shape and type of another",
        f"{_LIKE}\n{_FILL}",
        "dtype, order, subok, shape, device",
        '>>> ft.full_like([1, 2, 3], 7, allocator="pool()")\narray([7, 7, 7])',
    ),
    "ones": _Row(
        "a new array of the given shape and type, filled with ones",
        _SHAPE,
        "dtype, order, device, like",
        '>>> ft.ones(3, int, allocator="pool()")\narray([1, 1, 1])',
    ),
    "ones_like": _Row(
        "an array of ones with the shape and type of another",
        _LIKE,
        "dtype, order, subok, shape, device",
        '>>> ft.ones_like([1, 2, 3], allocator="pool()")\narray([1, 1, 1])',
    ),
    "zeros": _Row(
        "a new array of the given shape and type, filled with zeros",
        _SHAPE,
        "dtype, order, device, like",
        '>>> ft.zeros((2, 3), allocator=ft.pages(huge="thp"))\narray([[0., 0., 0.],\n       [0., 0., 0.]])',
        "Pages of fresh memory are faulted in when they are first written, whatever the size of the array.",
    ),
    "zeros_like": _Row(
        "an array of zeros with the shape and type of another",
        _LIKE,
        "dtype, order, subok, shape, device",
        '>>> ft.zeros_like([1, 2, 3], allocator="pool()")\narray([0, 0, 0])',
    ),
}

__all__ = list(_TABLE)


def _docstring(name: str) -> str:
    row = _TABLE[name]
    notes = f"Notes\n-----\n{row.notes}\n\n" if row.notes else ""
    return f"""Return {row.returns}.

Parameters
----------
{row.parameters}
{row.others} : optional
    As for :func:`numpy.{name}`.
allocator : AllocatorLike, optional
    Allocator that the memory comes from. The default is the current one.

Returns
-------
ndarray

Raises
------
TypeError, ValueError
    If an argument is invalid, as NumPy's function raises it, or `allocator` is not an allocator.
MemoryError
    If there is not enough memory; it states what was requested and which limit was exceeded.

See Also
--------
numpy.{name} : Equivalent function of NumPy.

{notes}Examples
--------
{row.example}
"""


def _function(name: str) -> Callable[..., Any]:
    numpys = getattr(np, name)  # now: replacing NumPy's functions by these must not recurse for ever
    work = satisfying if name == "array" else made

    def function(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
        return work(numpys, args, kwargs, allocator)

    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = "firsttouch", _docstring(name)
    function.__signature__ = signature(numpys)  # type: ignore[attr-defined]
    return function


def _method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Allocator, *args: Any, **kwargs: Any) -> Any:
        return function(*args, allocator=self, **kwargs)

    takes = inspect.signature(function)
    one = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    rest = [parameter for parameter in takes.parameters.values() if parameter.name != "allocator"]
    method.__signature__ = takes.replace(parameters=[one, *rest])  # type: ignore[attr-defined]
    method.__name__, method.__qualname__, method.__module__ = name, f"Allocator.{name}", "firsttouch"
    method.__doc__ = f"Return {_TABLE[name].returns}, on this allocator's memory.\n\nAs :func:`firsttouch.{name}`."
    return method


def _complete() -> None:
    """Make the functions and the methods."""
    long = {name: _function(name) for name in _TABLE}
    # `empty` and `zeros` have a short way in the native module, for plain shapes and types; the rest comes here.
    _firsttouch.register(empty=long["empty"], zeros=long["zeros"])
    for name, function in long.items():
        native = getattr(_firsttouch, name, None)
        globals()[name] = function if native is None else _firsttouch.documented(native, _docstring(name))
        if native is None:
            setattr(Allocator, name, _method(name, function))


_complete()
