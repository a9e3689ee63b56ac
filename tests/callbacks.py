"""Allocators on callbacks of ctypes, which need the GIL in every thread that frees."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable

import firsttouch as ft

_MALLOC = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_FREE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_C = ctypes.CDLL(None if sys.platform != "win32" else "ucrtbase")
_C.malloc.restype = ctypes.c_void_p
_C.malloc.argtypes = (ctypes.c_size_t,)
_C.free.argtypes = (ctypes.c_void_p,)

Told = Callable[[int], object]


def _nobody(_: int) -> None:
    pass


class Callbacks:
    """The C library's `malloc` and `free`, called by Python; to be kept while an array of the allocator lives."""

    def __init__(self, asked: Told = _nobody, freed: Told = _nobody) -> None:
        def malloc(_: object, size: int) -> int:
            asked(size)
            found: int = _C.malloc(size)
            return found

        def free(_: object, block: int, size: int) -> None:
            freed(size)
            _C.free(block)

        self._kept = (_MALLOC(malloc), _FREE(free))

    def allocator(self) -> ft.Allocator:
        malloc, free = (ctypes.cast(each, ctypes.c_void_p).value or 0 for each in self._kept)
        return ft.allocators.from_functions(malloc=malloc, free=free)
