"""NumPy's ways to make an array, on memory of one's choice: ``firsttouch.zeros`` is a drop-in for ``numpy.zeros``.

Each takes what NumPy's function of this name takes, and ``allocator``: an allocator, its expression as text
(``"aligned(4096)"``), or an object of one's own; ``None`` is the current one. Every size is at a multiple of 64 bytes
or of what the allocator promises. Every allocator has them as methods: ``ft.aligned(64).zeros((4, 4), np.float32)``.

Errors are NumPy's: :exc:`ValueError` for negative dimensions and for more bytes than can be counted,
:exc:`TypeError` for arguments. Where there is no memory a :exc:`MemoryError` says what was asked, what was
available and which limit spoke; what an allocator of one's own raises comes out as it is. An ``allocator`` that is none
is a :exc:`TypeError` or, for text, a :exc:`ValueError`.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from firsttouch._constructing import made, satisfying, signature
from firsttouch._firsttouch import Allocator

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

# NumPy's functions as they are now: whoever puts ours in their place does not make them call themselves.
_numpys: dict[str, Callable[..., Any]] = {name: getattr(np, name) for name in __all__}


def empty(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """An array of ``shape`` whose items are anything (of ``calloc()``: zero; objects: ``None``).

    ``shape``: a number or a tuple of numbers, none negative. ``dtype``: ``float`` if not given. ``order``: ``"C"``,
    rows in one piece, or ``"F"``, columns.
    """
    return made(_numpys["empty"], args, kwargs, allocator)


def zeros(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """An array of ``shape`` whose items are zero, ``False`` or empty.

    Where memory is fresh, pages become real when they are first written, whatever the size. Arguments as for
    :func:`empty`.
    """
    return made(_numpys["zeros"], args, kwargs, allocator)


def ones(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """An array of ``shape`` whose items are one. Arguments as for :func:`empty`."""
    return made(_numpys["ones"], args, kwargs, allocator)


def full(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """An array of ``shape`` whose items are ``fill_value``, or are broadcast from it.

    ``dtype``: that of ``fill_value`` if not given. Other arguments as for :func:`empty`.
    """
    return made(_numpys["full"], args, kwargs, allocator)


def empty_like(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """An array with the shape, type and order of ``prototype``, whose items are anything.

    ``dtype``, ``shape`` and ``order`` (``"K"``: as near to the prototype's as can be) replace the prototype's.
    ``subok``: a subclass gives an array of that subclass.
    """
    return made(_numpys["empty_like"], args, kwargs, allocator)


def zeros_like(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """An array like ``a`` whose items are zero. Arguments as for :func:`empty_like`."""
    return made(_numpys["zeros_like"], args, kwargs, allocator)


def ones_like(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """An array like ``a`` whose items are one. Arguments as for :func:`empty_like`."""
    return made(_numpys["ones_like"], args, kwargs, allocator)


def full_like(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """An array like ``a`` whose items are ``fill_value``. Other arguments as for :func:`empty_like`."""
    return made(_numpys["full_like"], args, kwargs, allocator)


def array(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """An array from ``object``: a sequence, nested sequences, a number, an array, or whatever offers itself as one.

    ``copy``: ``True`` always copies; ``None`` where it must, which includes memory that is not the allocator's;
    ``False`` never, and raises :exc:`ValueError` where it would have to. With ``allocator=None`` any memory will do.
    ``ndmin``: dimensions that it has at least. ``order`` and ``subok`` as for :func:`empty_like`.
    """
    return satisfying(_numpys["array"], args, kwargs, allocator)


def asarray(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """``a`` as an array, itself where it is one of this ``dtype`` and ``order`` on memory that satisfies ``allocator``.

    ``copy`` as for :func:`array`; ``None`` if not given. An array at a multiple of 4096 bytes satisfies
    ``aligned(4096)``, whoever made it; other allocators want memory of their own.
    """
    return satisfying(_numpys["asarray"], args, kwargs, allocator)


def copy(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """A copy of ``a``. ``order`` and ``subok`` as for :func:`empty_like`."""
    return satisfying(_numpys["copy"], args, kwargs, allocator)


def arange(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """The numbers (or dates) from ``start`` up to, not including, ``stop`` in steps of ``step``."""
    return made(_numpys["arange"], args, kwargs, allocator)


def linspace(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """``num`` numbers at equal distances from ``start`` to ``stop``, which ``endpoint=False`` leaves out.

    ``retstep=True`` gives the distance as well. Intermediate arrays are the allocator's, too.
    """
    return made(_numpys["linspace"], args, kwargs, allocator)


def fromiter(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """A one-dimensional array of ``dtype`` from the items of ``iter``, of all of them or the first ``count``.

    Arrays that the iterator itself makes meanwhile are the allocator's, too.
    """
    return made(_numpys["fromiter"], args, kwargs, allocator)


def eye(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
    """``N`` rows of ``M`` (if not given, ``N``) zeros, with ones on the ``k``-th diagonal."""
    return made(_numpys["eye"], args, kwargs, allocator)


def _method(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def method(self: Allocator, *args: Any, **kwargs: Any) -> Any:
        return function(*args, allocator=self, **kwargs)

    takes = inspect.signature(function)
    one = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
    rest = [parameter for parameter in takes.parameters.values() if parameter.name != "allocator"]
    method.__signature__ = takes.replace(parameters=[one, *rest])  # type: ignore[attr-defined]
    method.__name__, method.__qualname__ = name, f"Allocator.{name}"
    method.__module__, method.__doc__ = "firsttouch", function.__doc__
    return method


def _complete() -> None:
    """Gives the functions NumPy's signatures, and makes the methods."""
    for name in __all__:
        function = globals()[name]
        function.__signature__, function.__module__ = signature(_numpys[name], name), "firsttouch"
        METHODS[name] = _method(name, function)


METHODS: dict[str, Callable[..., Any]] = {}
"""The functions as methods of an allocator."""

_complete()
