"""NumPy's constructors with an allocator: NumPy does the work, on memory of the allocator."""

import functools
import inspect
import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from firsttouch import _firsttouch
from firsttouch._firsttouch import Allocator
from firsttouch._internal.resolve import checked
from firsttouch.context import entered, leave_under

try:
    from numpy._core._exceptions import _ArrayMemoryError as _OfNumPy
except ImportError:  # a private name of NumPy's
    _OfNumPy = MemoryError  # type: ignore[misc, assignment]

Constructor = Callable[..., Any]

_NUMPYS = _firsttouch.numpy_default()
_numpy_array = np.array


def made(constructor: Constructor, arguments: tuple[Any, ...], named: Mapping[str, Any], allocator: object) -> Any:
    """Return what ``constructor`` returns, on memory of ``allocator``; ``None`` is the current one."""
    chosen = _current() if allocator is None else checked(allocator, f"{constructor.__name__}()")
    if chosen is None:
        return constructor(*arguments, **named)
    make = functools.partial(constructor, *arguments, **named)
    number = _firsttouch.slab_axis(chosen)
    if number is not None:
        make = functools.partial(_in_slabs, make, _expected(constructor, arguments, named, number), number, chosen)
    own: BaseException | None
    failed = _firsttouch.last_failure()
    _firsttouch.take_error()  # of an earlier request whose caller did not take it
    open_blocks = entered()
    before = _firsttouch.enter_named(chosen)
    try:
        return make()
    except MemoryError as error:
        own = error.__cause__ or _firsttouch.take_error()
        if own is None:
            raise _explained(error, failed) from error
    finally:
        leave_under(before, open_blocks)
    raise own


def _current() -> Allocator | None:
    """Return the current allocator if it is one of firsttouch's; otherwise NumPy's functions need no change."""
    found = _firsttouch.current()
    return None if found == _NUMPYS or _firsttouch.is_foreign(found) else found


def satisfying(constructor: Constructor, arguments: tuple[Any, ...], named: dict[str, Any], allocator: object) -> Any:
    """As `made`, for a constructor that may return its argument; one on another allocator's memory is copied."""
    if allocator is None:
        return made(constructor, arguments, named, None)
    chosen = checked(allocator, f"{constructor.__name__}()")
    found = made(constructor, arguments, named, chosen)
    if not isinstance(found, np.ndarray) or _firsttouch.accepts(chosen, found):
        return found
    if _never(named.get("copy")):
        raise ValueError(
            "Unable to avoid copy while creating an array as requested: "
            f"its memory does not come from {chosen!r}; give copy=None to allow one"
        )
    return made(_copied, (found,), {}, chosen)


def _never(copy: object) -> bool:
    """Return whether `copy` forbids one: NumPy takes its truth value."""
    try:
        return copy is not None and not copy
    except ValueError:  # a mode of NumPy's that has none
        return False


def _copied(array: np.ndarray) -> np.ndarray:
    return _numpy_array(array, copy=True, order="K", subok=True)


#: Signatures of the functions written in C, which NumPy publishes from 2.4 on.
_IN_C: dict[str, Constructor] = {
    "empty": lambda shape, dtype=float, order="C", *, device=None, like=None: ...,  # noqa: ARG005
    "zeros": lambda shape, dtype=float, order="C", *, device=None, like=None: ...,  # noqa: ARG005
    "empty_like": lambda prototype, /, dtype=None, order="K", subok=True, shape=None, *, device=None: ...,  # noqa: ARG005
    "array": lambda object, dtype=None, *, copy=True, order="K", subok=False, ndmin=0, like=None: ...,  # noqa: A006, ARG005
}


def signature(constructor: Constructor) -> inspect.Signature:
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


class ArrayMemoryError(_OfNumPy):
    """NumPy's error, with the reason."""

    def __init__(self, shape: Any, dtype: Any, reason: str) -> None:
        super().__init__(shape, dtype)
        self.reason = reason
        """The requested size, the available memory and the limit that was exceeded."""

    def __str__(self) -> str:
        return f"{super().__str__()}: {self.reason}"


def _explained(error: MemoryError, before: tuple[int, str, str] | None) -> MemoryError:
    """Return the error with the reason of the last failure, if that is a new one; `before` was the last one before."""
    found = _firsttouch.last_failure()
    if found is None or (found == before and found[0] != _asked(error)):
        return error
    vars(error).pop("__notes__", None)  # the same reason
    if type(error) is _OfNumPy and _asked(error) is not None:
        return ArrayMemoryError(*error.args, found[2])  # type: ignore[call-arg]
    return MemoryError(f"{str(error) or 'no memory for the array'}: {found[2]}")


def _add_reason(error: MemoryError) -> None:
    """Add the reason of the last failure to NumPy's error as a note, if that was this one's and it has none yet."""
    found = _firsttouch.last_failure()
    if found is not None and found[0] == _asked(error) and found[2] not in getattr(error, "__notes__", ()):
        error.add_note(found[2])


def _asked(error: MemoryError) -> int | None:
    """Return the bytes that NumPy requested, which its error keeps as shape and type."""
    try:
        shape, dtype = error.args
        return int(max(1, math.prod(shape)) * dtype.itemsize)
    except (AttributeError, TypeError, ValueError):
        return None


_firsttouch.register(add_reason=_add_reason)


# ---- Slabs along an axis: the allocator, which only knows bytes, is told how the array's axes are laid out -----------


Expected = tuple[int, int, int]
"""Bytes of an array; of one of its axes, bytes from item to item, and items."""

_Made = tuple[Any, Any, Any, "np.ndarray | None"]
"""Shape, dtype and order of an array to be made, and the array that it is to be like."""


def checked_axis(axis: int, ndim: int) -> int:
    """Return an axis as a number from 0; a scalar's only slab is along its axis 0."""
    if not -max(ndim, 1) <= axis < max(ndim, 1):
        raise ValueError(f"blocked:{axis}: the array has {ndim} {'axis' if ndim == 1 else 'axes'}")
    return axis % max(ndim, 1)


def axis_of(a: np.ndarray, number: int) -> tuple[int, int]:
    """Return the stride in bytes along an axis, and its length."""
    axis = checked_axis(number, a.ndim)
    if a.size == 0 or a.ndim == 0:
        return a.itemsize, 1
    strides = sorted((abs(stride), items) for stride, items in zip(a.strides, a.shape, strict=True) if items > 1)
    expected = a.itemsize
    for stride, items in strides:
        if stride != expected:
            raise ValueError(f"blocked:{number} needs an array without gaps; this is a view with strides {a.strides}")
        expected *= items
    if a.strides[axis] < 0 and a.shape[axis] > 1:
        raise ValueError(f"blocked:{number} along an axis that runs backwards: give the array without [::-1]")
    return max(a.strides[axis], a.itemsize), a.shape[axis]


def _plain(shape: Any, dtype: Any = float, order: Any = "C", **_: Any) -> _Made:
    return shape, dtype, order, None


def _filled(shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", **_: Any) -> _Made:
    return shape, np.asarray(fill_value).dtype if dtype is None else dtype, order, None


def _like(a: Any = None, dtype: Any = None, order: Any = "K", _: Any = None, shape: Any = None, **named: Any) -> _Made:
    like = named.get("prototype", named.get("object", a))
    if not isinstance(like, np.ndarray) or named.get("ndmin", 0) > like.ndim:
        raise TypeError  # known once it is made
    return like.shape if shape is None else shape, like.dtype if dtype is None else dtype, order or "K", like


_LAYOUTS: dict[str, Callable[..., _Made]] = {
    **dict.fromkeys(("empty", "zeros", "ones"), _plain),
    **dict.fromkeys(("empty_like", "zeros_like", "ones_like", "array", "_copied"), _like),
    "full": _filled,
    "full_like": lambda a, _=None, *rest, **named: _like(a, *rest, **named),
}


def _expected(
    constructor: Constructor, arguments: tuple[Any, ...], named: Mapping[str, Any], number: int
) -> Expected | None:
    """Return the layout of the axis in what ``constructor`` makes; ``None`` if it is only known afterwards.

    Raises :exc:`ValueError` for an axis that it will not have.
    """
    try:
        shape, dtype, order, like = _LAYOUTS[constructor.__name__](*arguments, **named)
        kind = np.dtype(dtype)
        shape = (*(shape if np.iterable(shape) else (shape,)), *kind.shape)
        inner, itemsize = _inner_first(len(shape), str(order).upper(), like), kind.base.itemsize
        nbytes = math.prod(shape) * itemsize
    except Exception:  # the constructor will say what is wrong
        return None
    axis = checked_axis(number, len(shape))
    if nbytes <= 0:
        return None
    within = inner[: inner.index(axis)] if shape else []
    return nbytes, itemsize * math.prod(shape[one] for one in within), shape[axis] if shape else 1


def _inner_first(ndim: int, order: str, like: np.ndarray | None) -> list[int]:
    """Return an array's axes from the innermost outwards, as NumPy lays them out."""
    keeps = like is not None and order in ("A", "K")
    if order == "F" or (like is not None and keeps and like.flags.fnc):
        return list(range(ndim))
    if like is not None and order == "K" and ndim == like.ndim and not like.flags.c_contiguous:
        return sorted(range(ndim), key=lambda axis: (abs(like.strides[axis]), -axis))
    return list(reversed(range(ndim)))


def _in_slabs(make: Callable[[], Any], stated: Expected | None, number: int, allocator: Allocator) -> Any:
    """Return what ``make`` makes, in slabs: allocated with the stated layout, or migrated if it differs."""
    _firsttouch.expect_axis(stated)
    try:
        array = make()
    finally:
        _firsttouch.expect_axis()
    if isinstance(array, np.ndarray) and array.nbytes and _firsttouch.get_allocator(array) == allocator:
        checked_axis(number, array.ndim)
        try:
            axis = axis_of(array, number)
        except ValueError:  # a view with gaps, or backwards: not made here, but an argument that needed no copy
            return array
        if (array.nbytes, *axis) != stated:
            with suppress(OSError):  # the receipt says why
                _firsttouch.migrate_range(array.ctypes.data, array.nbytes, f"blocked:{number}", axis, allocator)
    return array
