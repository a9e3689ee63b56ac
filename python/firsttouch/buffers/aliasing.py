"""Copies of arrays that share memory, which share memory in the same way."""

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]

_LINE = 64


def extent(array: Array) -> tuple[int, int]:
    """Return the addresses of an array's first byte and of the one after its last."""
    low = array.ctypes.data
    if array.size == 0:
        return low, low
    high = low + array.itemsize
    for length, stride in zip(array.shape, array.strides, strict=True):
        if stride < 0:
            low += (length - 1) * stride
        else:
            high += (length - 1) * stride
    return low, high


def groups(arrays: Iterable[Array]) -> Iterator[list[Array]]:
    """Group arrays whose memory overlaps; each array is in one group."""
    together: list[Array] = []
    end = 0
    for low, high, array in sorted(((*extent(array), array) for array in arrays), key=lambda each: each[:2]):
        if together and low >= end:
            yield together
            together, end = [], 0
        together.append(array)
        end = max(end, high)
    if together:
        yield together


def copies(group: list[Array]) -> list[Array]:
    """Return copies of all arrays of a group, on their own memory, with their order and strides; :func:`lock` is due.

    Arrays that cannot be copied in this way are returned themselves: items that hold references, if no array of the
    group covers all of them.
    """
    if len(group) == 1 and group[0].flags.owndata:
        return [group[0].copy(order="K")]
    extents = [extent(array) for array in group]
    low, high = min(low for low, _ in extents), max(high for _, high in extents)
    references = any(array.dtype.hasobject for array in group)
    if len(group) == 1 and (references or group[0].nbytes <= high - low):
        return [group[0].copy(order="K")]
    whole = next((array for array in _known(group) if _is_all(array, low, high)), None)
    if (
        whole is not None and whole.dtype.char != "T"
    ):  # strings are stored outside their array, so a view cannot be made by hand
        copy = whole.copy(order="K")
        memory, start = _in_order(copy), low
    elif references:
        return group
    else:
        start = low - low % _LINE  # as well aligned as it was
        memory = np.empty(high - start, np.uint8)
        memory[low - start :] = np.asarray(_Bytes(low, high - low))
    return [copy if array is whole else _placed(array, memory, start) for array in group]


def lock(array: Array, copy: Array) -> None:
    """Make the copy of a read-only array read-only, too."""
    if not array.flags.writeable:
        copy.flags.writeable = False


def _known(group: list[Array]) -> Iterator[Array]:
    """Yield the arrays of a group, owners of memory first, and what they are views of."""
    yield from sorted(group, key=lambda array: not array.flags.owndata)
    for array in group:
        base = array.base
        while type(base) is np.ndarray:
            yield base
            base = base.base


def _is_all(array: Array, low: int, high: int) -> bool:
    """Return whether the array covers the bytes between two addresses exactly once."""
    if array.nbytes != high - low or array.ctypes.data != low:
        return False
    step = array.itemsize
    for stride, length in sorted(zip(array.strides, array.shape, strict=True)):
        if length > 1:
            if stride != step:
                return False
            step *= length
    return True


def _in_order(array: Array) -> Array:
    """Return the items of a contiguous array in memory order."""
    axes = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
    flat = array.transpose(axes).reshape(-1)
    return flat if flat.dtype.hasobject else flat.view(np.uint8)


def _placed(array: Array, memory: Array, start: int) -> Array:
    """Return an array like another, in a copy of the memory that begins at `start`."""
    return np.ndarray(array.shape, array.dtype, memory, array.ctypes.data - start, array.strides)


class _Bytes:
    """Memory as NumPy's array interface."""

    def __init__(self, address: int, size: int) -> None:
        self.__array_interface__ = {"data": (address, True), "shape": (size,), "typestr": "|u1", "version": 3}
