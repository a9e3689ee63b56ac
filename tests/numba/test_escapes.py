"""Arrays that outlive their mark or their call are kept, whatever refers to them."""

import gc
import threading
from typing import Any

import numpy as np

import firsttouch as ft
from tests.numba.compiling import njit, numba

N = 30


@njit
def spoil(buf: Any) -> int:
    """Takes what is free, and writes to it."""
    total = 0
    for n in (1, 30, 1000, 3000):
        x = buf.empty(n, np.int64)
        x[:] = -1
        total += x.sum()
    return total


@njit
def given(buf: Any, value: int) -> Any:
    x = buf.empty(N, np.int64)
    for i in range(N):
        x[i] = value
    return x


def holds(arrays: Any, values: Any) -> bool:
    return all((array == value).all() for array, value in zip(arrays, values, strict=True))


def test_returned_arrays() -> None:
    buffer = ft.ScratchBuffer()
    arrays = [given(buffer, value) for value in range(3000)]
    for _ in range(100):
        spoil(buffer)
    assert holds(arrays, range(3000))
    # Two chunks at most are pinned by few arrays; after that each array has memory of its own.
    assert buffer.used <= 2 * sum(array.nbytes for array in arrays) + 3 * 65536
    del arrays[::2]
    spoil(buffer)
    assert holds(arrays, range(1, 3000, 2))
    arrays.clear()
    assert buffer.used == 0


KEPT: list[Any] = []


@njit
def by_object_mode(buf: Any) -> Any:
    mark = buf.mark()
    x = given(buf, 9)
    with numba.objmode():
        KEPT.append(x)
        KEPT.append(buf)
    buf.rewind(mark)
    return spoil(buf)


def test_arrays_and_buffers_in_object_mode() -> None:
    buffer = ft.ScratchBuffer()
    by_object_mode(buffer)
    x, same = KEPT
    KEPT.clear()
    assert same is buffer
    assert (x == 9).all()
    del x
    assert buffer.used == 0


def test_the_buffer_is_dropped_first() -> None:
    x = given(ft.ScratchBuffer(), 7)
    y = given(ft.FixedBuffer(), 8)
    gc.collect()
    assert (x == 7).all()
    assert (y == 8).all()


def test_arrays_die_in_other_threads() -> None:
    buffer = ft.ScratchBuffer()
    boxes: list[list[Any]] = [[given(buffer, value)] for value in range(400)]

    def drop(mine: Any) -> None:
        for box in mine:
            assert box[0].sum() == box[0][0] * N
            box.clear()

    threads = [threading.Thread(target=drop, args=(boxes[start::4],)) for start in range(4)]
    for thread in threads:
        thread.start()
    for _ in range(200):
        spoil(buffer)
    for thread in threads:
        thread.join()
    assert buffer.used == 0
