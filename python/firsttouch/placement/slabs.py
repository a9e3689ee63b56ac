"""Slabs along an axis at creation: tells the allocator, which only knows bytes, how the array's axes are laid out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np

from firsttouch import _firsttouch
from firsttouch._firsttouch import Allocator
from firsttouch.placement.axes import axis_of, checked_axis

Made: TypeAlias = tuple[Any, Any, Any, "np.ndarray | None"]
"""Shape, dtype and order of an array to be made, and the array that it is to be like."""

Expected: TypeAlias = tuple[int, int, int]
"""Bytes of an array; of one of its axes, bytes from item to item, and items."""


def _plain(shape: Any, dtype: Any = float, order: Any = "C", **_: Any) -> Made:
    return shape, dtype, order, None


def _filled(shape: Any, fill_value: Any, dtype: Any = None, order: Any = "C", **_: Any) -> Made:
    return shape, np.asarray(fill_value).dtype if dtype is None else dtype, order, None


def _like(a: Any = None, dtype: Any = None, order: Any = "K", _: Any = None, shape: Any = None, **named: Any) -> Made:
    like = named.get("prototype", named.get("object", a))
    if not isinstance(like, np.ndarray) or named.get("ndmin", 0) > like.ndim:
        raise TypeError  # known once it is made
    return like.shape if shape is None else shape, like.dtype if dtype is None else dtype, order or "K", like


def _eye(N: Any, M: Any = None, _: Any = 0, dtype: Any = float, order: Any = "C", **__: Any) -> Made:  # noqa: N803
    return (N, N if M is None else M), dtype, order, None


_KNOWN: dict[str, Callable[..., Made]] = {
    **dict.fromkeys(("empty", "zeros", "ones"), _plain),
    **dict.fromkeys(("empty_like", "zeros_like", "ones_like", "array", "asarray", "_copied"), _like),
    "copy": lambda a, order="K", *_, **__: _like(a, None, order),
    "full": _filled,
    "full_like": lambda a, _=None, *rest, **named: _like(a, *rest, **named),
    "eye": _eye,
}


def expected(
    constructor: Callable[..., Any], arguments: tuple[Any, ...], named: Mapping[str, Any], number: int
) -> Expected | None:
    """Return the layout of the axis in what ``constructor`` makes; ``None`` if it is only known afterwards.

    Raises :exc:`ValueError` for an axis that it will not have.
    """
    try:
        shape, dtype, order, like = _KNOWN[constructor.__name__](*arguments, **named)
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


def laid(make: Callable[[], Any], stated: Expected | None, number: int, allocator: Allocator) -> Any:
    """Return what ``make`` makes, in slabs: allocated with the stated layout, or migrated if it differs."""
    _firsttouch.expect_axis(stated)
    try:
        made = make()
    finally:
        _firsttouch.expect_axis()
    array = made[0] if isinstance(made, tuple) and made else made  # linspace may return its step, too
    if isinstance(array, np.ndarray) and array.nbytes and _firsttouch.get_allocator(array) == allocator:
        checked_axis(number, array.ndim)
        try:
            axis = axis_of(array, number)
        except ValueError:  # a view with gaps, or backwards: not made here, but an argument that needed no copy
            return made
        if (array.nbytes, *axis) != stated:
            with suppress(OSError):  # the receipt says why
                _firsttouch.migrate_range(array.ctypes.data, array.nbytes, f"blocked:{number}", axis, allocator)
    return made
