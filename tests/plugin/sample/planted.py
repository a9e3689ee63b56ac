"""The library in planted.c, called with the addresses of arrays; it trusts the arrays' own lengths."""

import ctypes
from pathlib import Path

import numpy as np

_library = ctypes.CDLL(str(Path(__file__).with_name("libplanted.so")))


def call(name, *arguments, returns=ctypes.c_ssize_t):
    """Calls a function: arrays by address, all else as whole numbers."""
    function = _library[name]
    function.restype = returns
    passed = [
        ctypes.c_void_p(each.ctypes.data) if isinstance(each, np.ndarray) else ctypes.c_ssize_t(each)
        for each in arguments
    ]
    return function(*passed)
