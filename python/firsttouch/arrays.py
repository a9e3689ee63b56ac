"""NumPy's ways to make an array, with a choice of memory: ``firsttouch.zeros`` is a drop-in for ``numpy.zeros``.

Each function accepts what NumPy's function of the same name accepts, and `allocator`. Every allocator has them as
methods: ``ft.aligned(64).zeros((4, 4), np.float32)``. Arrays are aligned to 64 bytes, or as the allocator guarantees;
those of pools from 16 KiB on. Other functions of NumPy take their memory from an allocator in a block:
``with ft.use(allocator): np.arange(10)``.

Errors are NumPy's, except that a :exc:`MemoryError` states what was requested, what was available and which limit was
exceeded. Exceptions of a custom allocator are propagated.
"""

import inspect
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from firsttouch import _firsttouch
from firsttouch._firsttouch import Allocator
from firsttouch._internal.resolve import checked


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

# ---- The work: NumPy's function, with an allocator -------------------------------------------------------------------

_Constructor = Callable[..., Any]

_NUMPYS = _firsttouch.numpy_default()
_numpy_array = np.array


def _made(constructor: _Constructor, arguments: tuple[Any, ...], named: Mapping[str, Any], allocator: object) -> Any:
    """Return what ``constructor`` returns, on memory of ``allocator``; ``None`` is the current one."""
    chosen = _current() if allocator is None else checked(allocator, f"{constructor.__name__}()")
    if chosen is None:
        return constructor(*arguments, **named)
    own: BaseException | None
    failed = _firsttouch.last_failure()
    _firsttouch.take_error()  # of an earlier request whose caller did not take it
    before = _firsttouch.enter_named(chosen)
    try:
        return constructor(*arguments, **named)
    except MemoryError as error:
        own = error.__cause__ or _firsttouch.take_error()
        if own is None:
            raise _explained(error, failed) from error
    finally:
        _firsttouch.leave(before)
    raise own


def _current() -> Allocator | None:
    """Return the current allocator if it is one of firsttouch's; otherwise NumPy's functions need no change."""
    found = _firsttouch.current()
    return None if found == _NUMPYS or _firsttouch.is_foreign(found) else found


def _satisfying(constructor: _Constructor, arguments: tuple[Any, ...], named: dict[str, Any], allocator: object) -> Any:
    """As `_made`, for a constructor that may return its argument; one on another allocator's memory is copied."""
    if allocator is None:
        return _made(constructor, arguments, named, None)
    chosen = checked(allocator, f"{constructor.__name__}()")
    found = _made(constructor, arguments, named, chosen)
    if not isinstance(found, np.ndarray) or _firsttouch.accepts(chosen, found):
        return found
    if _never(named.get("copy")):
        raise ValueError(
            "Unable to avoid copy while creating an array as requested: "
            f"its memory does not come from {chosen!r}; give copy=None to allow one"
        )
    return _made(_copied, (found,), {}, chosen)


def _never(copy: object) -> bool:
    """Return whether `copy` forbids one: NumPy takes its truth value."""
    try:
        return copy is not None and not copy
    except ValueError:  # a mode of NumPy's that has none
        return False


def _copied(array: np.ndarray) -> np.ndarray:
    return _numpy_array(array, copy=True, order="K", subok=True)


#: Signatures of the functions written in C, which NumPy publishes from 2.4 on.
_IN_C: dict[str, _Constructor] = {
    "empty": lambda shape, dtype=float, order="C", *, device=None, like=None: ...,  # noqa: ARG005
    "zeros": lambda shape, dtype=float, order="C", *, device=None, like=None: ...,  # noqa: ARG005
    "empty_like": lambda prototype, /, dtype=None, order="K", subok=True, shape=None, *, device=None: ...,  # noqa: ARG005
    "array": lambda object, dtype=None, *, copy=True, order="K", subok=False, ndmin=0, like=None: ...,  # noqa: A006, ARG005
}


def _signature(constructor: _Constructor) -> inspect.Signature:
    """Return NumPy's signature with ``allocator=None`` as its last keyword."""
    text = getattr(constructor, "__text_signature__", None)
    try:
        # Compiling NumPy's own signature takes a fraction of the time of inspect, which counts at every import.
        known = inspect.signature(eval(f"(lambda {text[1:-1]}: ...)") if text else constructor)
    except ValueError:
        known = inspect.signature(_IN_C[constructor.__name__])
    allocator = inspect.Parameter("allocator", inspect.Parameter.KEYWORD_ONLY, default=None)
    return known.replace(parameters=[*known.parameters.values(), allocator])


# ---- NumPy's MemoryError, extended by the available memory and the limit that was exceeded ---------------------------


def _explained(error: MemoryError, before: tuple[int, str, str] | None) -> MemoryError:
    """Return the error with the reason of the last failure, if that is a new one; `before` was the last one before."""
    found = _firsttouch.last_failure()
    if found is None or (found == before and found[0] != _asked(error)):
        return error
    return MemoryError(f"{str(error) or 'no memory for the array'}: {found[2]}")


def _asked(error: MemoryError) -> int | None:
    """Return the bytes that NumPy requested, which its error keeps as shape and type."""
    try:
        shape, dtype = error.args
        return int(max(1, math.prod(shape)) * dtype.itemsize)
    except (AttributeError, TypeError, ValueError):
        return None


# ---- The functions and methods that users see ------------------------------------------------------------------------


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
    work = _satisfying if name == "array" else _made

    def function(*args: Any, allocator: object = None, **kwargs: Any) -> Any:
        return work(numpys, args, kwargs, allocator)

    function.__name__ = function.__qualname__ = name
    function.__module__, function.__doc__ = "firsttouch", _docstring(name)
    function.__signature__ = _signature(numpys)  # type: ignore[attr-defined]
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
