"""New shared arrays."""

from __future__ import annotations

import math
import operator
import sys
from typing import Any

import numpy as np

from firsttouch import _firsttouch
from firsttouch._firsttouch import SharedMapping
from firsttouch._internal import validation
from firsttouch.placement.policies import plain
from firsttouch.sharing import with_dask
from firsttouch.sharing.arrays import SharedArray, mapping_of, on
from firsttouch.sharing.handles import mapped

_MOST = 2**63 - 1


def zeros(shape: Any, dtype: Any, order: Any, huge: Any, numa: Any, populate: Any, strict: Any) -> SharedArray:
    """See :func:`firsttouch.shared`."""
    model = np.empty(0, dtype)  # strings without a length get one, and subarrays become axes
    kind = model.dtype
    if kind.hasobject:
        raise TypeError(f"an array of {kind} cannot be shared: its items are addresses, meaningless elsewhere")
    validation.one_of("order", order, ("C", "F"))
    dims = (*_dims(shape), *model.shape[1:])
    nbytes = math.prod(dims) * kind.itemsize
    if nbytes > _MOST:
        raise ValueError(f"an array of shape {dims} and {kind} would have {nbytes} bytes, more than can be counted")
    pages = _firsttouch.placed_pages(huge=huge, populate=populate, numa=plain(numa), strict=strict)
    if order == "F" and _firsttouch.slab_axis(pages) == 0:
        raise ValueError('numa="blocked:0" makes slabs along axis 0 of arrays in C order: give order="C"')
    mapping = SharedMapping(nbytes, pages)
    mapped[mapping.token, True] = mapping
    with_dask.register(SharedArray)
    array = on(mapping, 0, dims, None, kind)
    if order == "F":
        array = array.reshape(dims[::-1]).T
    return array.view(SharedArray)


def share(a: Any) -> SharedArray:
    """See :func:`firsttouch.share`."""
    masked = sys.modules.get("numpy.ma")  # NumPy imports it lazily, at the latest for such an array
    if masked is not None and isinstance(a, masked.MaskedArray):
        raise TypeError("a masked array is two arrays: share its .data and its .mask")
    array = np.asarray(a)
    if mapping_of(array) is not None:
        return array.view(SharedArray)
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    made = zeros(array.shape, array.dtype, order, False, None, False, False)
    made[...] = array
    return made


def _dims(shape: Any) -> tuple[int, ...]:
    try:
        dims = tuple(map(operator.index, shape)) if np.iterable(shape) else (operator.index(shape),)
    except TypeError:
        raise TypeError(f"shape={shape!r:.60}: give a number or a tuple of numbers") from None
    if min(dims, default=0) < 0:  # no generator: CPython 3.13.0 crashes where it has no memory for one
        raise ValueError(f"shape={dims}: negative dimensions are not allowed")
    return dims
