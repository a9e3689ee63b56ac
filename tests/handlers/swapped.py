"""Swaps everything of two arrays except their handlers, as f2py's ``intent(inplace)`` did before numpy#29929."""

import ctypes

import numpy as np
from numpy.typing import NDArray


class Fields(ctypes.Structure):
    """The head of NumPy's ``PyArrayObject_fields``, behind the object's own."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("nd", ctypes.c_int),
        ("dimensions", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("base", ctypes.c_void_p),
        ("descr", ctypes.c_void_p),
        ("flags", ctypes.c_int),
    )


def swap(one: NDArray[np.generic], other: NDArray[np.generic]) -> None:
    """Give each array what the other one had."""
    fields = [Fields.from_address(id(array) + object.__basicsize__) for array in (one, other)]
    kept = bytes(fields[0])
    size = ctypes.sizeof(Fields)
    ctypes.memmove(ctypes.addressof(fields[0]), ctypes.addressof(fields[1]), size)
    ctypes.memmove(ctypes.addressof(fields[1]), kept, size)
