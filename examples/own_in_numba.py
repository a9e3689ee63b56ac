"""A custom allocator in Numba: compiled Python functions, passed to `from_functions` by their addresses."""

import ctypes
from typing import Any

import numba
import numpy as np
from numba import types

import firsttouch as ft

libc = ctypes.CDLL(None)
c_malloc, c_free = libc.malloc, libc.free
c_malloc.argtypes, c_malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
c_free.argtypes, c_free.restype = [ctypes.c_void_p], None


def logging_malloc(context: Any, size: int) -> Any:
    """Record the sizes of the last hundred requests, in the array that is the context."""
    log = numba.carray(context, (101,), np.int64)
    log[1 + log[0] % 100] = size
    log[0] += 1
    return c_malloc(size)


def plain_free(context: Any, block: Any, size: int) -> None:  # noqa: ARG001
    """Free a block."""
    c_free(block)


def main() -> None:
    """Show which sizes an expression requests."""
    log = np.zeros(101, np.int64)
    malloc = numba.cfunc(types.voidptr(types.voidptr, types.size_t))(logging_malloc)
    free = numba.cfunc(types.void(types.voidptr, types.voidptr, types.size_t))(plain_free)
    logging = ft.allocators.from_functions(malloc=malloc.address, free=free.address, context=log.ctypes.data)
    with ft.use(logging):
        x = np.arange(100_000.0)
        y = x * 2 + 1
    sizes = log[1 : 1 + log[0]]
    print("requests of at least 800000 bytes:", int((sizes >= 800_000).sum()), "- and y[-1] is", y[-1])
    del x, y


if __name__ == "__main__":
    main()
