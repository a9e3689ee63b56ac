"""Axes of arrays, along which slabs are placed."""

from __future__ import annotations

import numpy as np


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
