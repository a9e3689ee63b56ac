"""Copies of arrays that share memory, which share memory in the same way."""

from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]

_LINE = 64


def extent(array: Array) -> tuple[int, int]:
    """The addresses between which its items lie: of the first byte, and of the one behind the last."""
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
    """Arrays whose memory overlaps, together; each array is in one group."""
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
    """Copies of all arrays of a group, on memory that is theirs alone; order and strides are kept, :func:`lock` is due.

    The very arrays where that can't be had: items that hold references, of which no array of the group knows all.
    """
    if len(group) == 1 and group[0].flags.owndata:
        return [group[0].copy(order="K")]
    extents = [extent(array) for array in group]
    low, high = min(low for low, _ in extents), max(high for _, high in extents)
    references = any(array.dtype.hasobject for array in group)
    if len(group) == 1 and (references or group[0].nbytes <= high - low):
        return [group[0].copy(order="K")]
    whole = next((array for array in _known(group) if _is_all(array, low, high)), None)
    if whole is not None and whole.dtype.char != "T":  # strings live beside their array: a view can't be made by hand
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
    """Makes the copy of an array that can't be written to such a one, too."""
    if not array.flags.writeable:
        copy.flags.writeable = False


def _known(group: list[Array]) -> Iterator[Array]:
    """The arrays of a group, those first that own their memory, and what they are views of."""
    yield from sorted(group, key=lambda array: not array.flags.owndata)
    for array in group:
        base = array.base
        while type(base) is np.ndarray:
            yield base
            base = base.base


def _is_all(array: Array, low: int, high: int) -> bool:
    """Whether the array is the bytes between two addresses, each once and none left out."""
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
    """The items of an array without gaps as they lie in memory."""
    axes = sorted(range(array.ndim), key=lambda axis: -array.strides[axis])
    flat = array.transpose(axes).reshape(-1)
    return flat if flat.dtype.hasobject else flat.view(np.uint8)


def _placed(array: Array, memory: Array, start: int) -> Array:
    """An array like another in memory that is a copy of what begins at the address `start`."""
    return np.ndarray(array.shape, array.dtype, memory, array.ctypes.data - start, array.strides)


class _Bytes:
    """Memory for NumPy to look at."""

    def __init__(self, address: int, size: int) -> None:
        self.__array_interface__ = {"data": (address, True), "shape": (size,), "typestr": "|u1", "version": 3}
