"""The array class that is pickled as a handle, and is otherwise ordinary."""

from __future__ import annotations

from typing import Any

import numpy as np

from firsttouch._firsttouch import SharedMapping
from firsttouch.sharing import callers, handles, with_dask


class SharedArray(np.ndarray):
    """An array, or a view of one, from :func:`firsttouch.shared` or :func:`firsttouch.share`.

    Results of computations are ordinary arrays. An instance whose memory is not shared, such as a copy, is pickled as
    any array.
    """

    __array_priority__ = -1.0

    def __new__(cls, *_args: object, **_kwargs: object) -> SharedArray:
        """Refuse: the memory has to come from :func:`firsttouch.shared`."""
        raise TypeError("make shared arrays with firsttouch.shared(shape, dtype), or firsttouch.share(array)")

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Make results ordinary arrays; ``out=`` and in-place operations keep the array they were given."""
        if array is self:
            return self
        return array[()] if return_scalar else np.asarray(array)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle a handle, whatever the protocol: nothing is copied, in the pickle or out of band.

        If a Dask worker spills, pickle the data: a handle would be valid only as long as the memory, which is about to
        be freed.
        """
        mapping = mapping_of(self)
        if mapping is None or callers.include("distributed.spill"):
            return np.asarray(self).__reduce_ex__(protocol)
        return handles.arrive, handles.made(mapping, self)


with_dask.register(SharedArray)  # a Dask worker imports this module to open handles


def mapping_of(a: np.ndarray) -> SharedMapping | None:
    """Return the shared memory that an array is on."""
    base: object = a
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, SharedMapping) else None


def on(mapping: SharedMapping, offset: int, shape: Any, strides: Any, dtype: Any) -> np.ndarray:
    """Return an ordinary array on shared memory, which it keeps alive."""
    return np.ndarray(shape, dtype, np.asarray(mapping), offset, strides)


handles.arrays_are(on, SharedArray)
