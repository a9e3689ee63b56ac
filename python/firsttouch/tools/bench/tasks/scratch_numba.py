"""`y = x + 1; y.sum()` in code compiled by Numba, with `y` on the heap, in scratch memory, and in a kept array."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy as np

import firsttouch as ft
from firsttouch.numba import ThreadBuffers

Function = TypeVar("Function", bound=Callable[..., Any])


def njit(function: Function) -> Function:
    """Compile with Numba; a typed wrapper."""
    compiled: Function = numba.njit(function)
    return compiled


@njit
def scratch_loop(buf: Any, x: Any) -> Any:
    """Use a buffer that is passed in."""
    mark = buf.mark()
    y = buf.empty(x.size, np.int64)
    for i in range(x.size):
        y[i] = x[i] + 1
    total = y.sum()
    buf.rewind(mark)
    return total


@njit
def local_loop(buffers: Any, x: Any) -> Any:
    """Use the calling thread's buffer, looked up each time."""
    return scratch_loop(buffers.local(), x)


@njit
def slice_loop(kept: Any, x: Any) -> Any:
    """Use a part of a kept array."""
    y = kept[: x.size]
    for i in range(x.size):
        y[i] = x[i] + 1
    return y.sum()


@njit
def empty_loop(_: Any, x: Any) -> Any:
    """Use a new array."""
    y = np.empty(x.size, np.int64)
    for i in range(x.size):
        y[i] = x[i] + 1
    return y.sum()


def repeated(step: Any) -> Any:
    """Return a loop in compiled code, because calling compiled code from Python costs more than all of this."""

    @njit
    def loop(source: Any, x: Any, turns: int) -> Any:
        total = 0
        for _ in range(turns):
            total += step(source, x)
        return total

    return loop


_loops: dict[str, Any] = {}


def ways(items: int) -> dict[str, Callable[[int], int]]:
    """Return each way as a function of the number of iterations that returns the sum of one; compiled once."""
    if not _loops:
        steps = {"heap": empty_loop, "default": local_loop, "buffer": scratch_loop, "kept": slice_loop}
        _loops.update({name: repeated(step) for name, step in steps.items()})
    x, nbytes = np.arange(items), 8 * items
    kept, buffer = np.empty(items, np.int64), ft.ScratchBuffer()
    fixed, buffers = ft.FixedBuffer(2 * nbytes + 4096), ThreadBuffers(threads=1)
    sources = {
        "heap": (_loops["heap"], kept),
        "default buffer": (_loops["default"], buffers),
        "explicit buffer": (_loops["buffer"], buffer),
        "fixed buffer": (_loops["buffer"], fixed),
        "kept array": (_loops["kept"], kept),
    }

    def turns(loop: Any, source: Any) -> Callable[[int], int]:
        return lambda count: int(loop(source, x, count)) // count

    return {name: turns(loop, source) for name, (loop, source) in sources.items()}
