"""Random programs in compiled code: every live array has its contents after every step."""

import gc
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.numba.compiling import njit, numba

TEMPORARY, KEEP, ENTER, LEAVE, FORGET, DROP = range(6)


@njit
def intact(kept: Any, local: Any, value: int) -> bool:
    for x in kept:
        for item in x:
            if item != x[0]:
                return False
    for item in local:  # noqa: SIM110 - Numba compiles no generators
        if item != value:
            return False
    return True


@njit
def follow(buf: Any, program: Any, sizes: Any, at: int, kept: Any) -> int:
    """Follows a program to the end of its scope: where that is, or below zero where bytes changed."""
    local, value = buf.empty(sizes[at % len(sizes)], np.int64), at
    local[:] = value
    while at < len(program):
        step, size = program[at], sizes[at]
        at += 1
        if step == TEMPORARY:
            x = buf.empty(size, np.int64)
            x[:] = -at
        elif step == KEEP:
            y = buf.empty((2, size), np.int64)
            y[:] = -1
            y[1, :] = at
            kept.append(y[1])
        elif step == DROP and len(kept) > 1:
            kept.pop(size % len(kept))
        elif step == FORGET:
            buf.mark()
        elif step == ENTER:
            mark = buf.mark()
            inside = buf.empty(size, np.int64)
            inside[:] = at
            at = follow(buf, program, sizes, at, kept)
            buf.rewind(mark)
            after = buf.empty(size, np.int64)
            after[:] = -3
            if at < 0 or not intact(kept, inside, inside[0]):
                return -1
        elif step == LEAVE:
            break
        if not intact(kept, local, value):
            return -1
    return at


@pytest.mark.parametrize("seed", range(3))
def test_programs(seed: int) -> None:
    buffer = ft.ScratchBuffer("256 KiB", ft.limited(ft.pool(), "64 MiB"))
    kept = numba.typed.List([np.ones(3, np.int64)])
    random = np.random.default_rng(seed)
    for _ in range(200):
        sizes = np.where(random.random(200) < 0.1, 1500, random.integers(1, 61, 200))
        assert follow(buffer, random.integers(0, 6, 200), sizes, 0, kept) >= 0
        while len(kept) > 20:
            kept.pop()
    del kept
    gc.collect()
    assert buffer.used == 0
