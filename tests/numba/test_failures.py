"""Requests that fail in compiled code, and exceptions: nothing is lost."""

from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.numba.compiling import njit, numba

scratch_buffer = pytest.importorskip("firsttouch.numba").scratch_buffer


@njit
def shaped(buf: Any, n: int) -> Any:
    return buf.empty((3, n), np.int64).size


@pytest.mark.parametrize(
    ("n", "says"),
    [(-1, r"negative dimensions are not allowed: \(3, -1\)"), (2**62, r"shape \(3, 4611686018427387904\)")],
)
def test_bad_shapes(n: int, says: str) -> None:
    buffer = ft.ScratchBuffer()
    with pytest.raises(ValueError, match=says):
        shaped(buffer, n)
    assert shaped(buffer, 2) == 6


@njit
def filling(buf: Any, count: int) -> int:
    total = 0
    for i in range(count):
        x = buf.empty(1000, np.int64)
        x[:] = i
        total += x[3]
    return total


@njit
def filling_caught(buf: Any) -> Any:
    mark = buf.mark()
    try:
        filling(buf, 1000)
    except Exception:  # noqa: BLE001, RUF100 - Numba knows no other
        buf.rewind(mark)
        return filling(buf, 3)
    return -1


@pytest.mark.parametrize(
    "make", [lambda: ft.FixedBuffer(100_000), lambda: ft.ScratchBuffer("64 KiB", ft.limited(ft.pool(), "128 KiB"))]
)
def test_full_buffers(make: Any) -> None:
    buffer = make()
    for _ in range(3):
        with pytest.raises(MemoryError, match=r"cannot allocate 7\.81 KiB"):
            filling(buffer, 1000)
        failure = ft.last_failure()
        assert failure is not None
        assert failure.asked == 8000
        assert buffer.used == 0
        assert filling(buffer, 5) == 10
        assert filling_caught(buffer) == 3


@njit
def between(buf: Any, n: int) -> Any:
    mark = buf.mark()
    x = buf.empty(n, np.int64)
    x[:] = 1
    if x.sum() > 3:
        raise ValueError("on the way")
    buf.rewind(mark)
    return n


@njit
def fails(buf: Any) -> int:
    failed = 0
    try:  # in a function of its own: in a loop Numba does not catch it on Python 3.13
        between(buf, 30)
    except Exception:  # noqa: BLE001, RUF100 - Numba knows no other
        failed += 1
    return failed


@njit
def around(buf: Any) -> Any:
    mark = buf.mark()
    before = buf.empty(3).ctypes.data
    buf.rewind(mark)
    for _ in range(1000):
        mark = buf.mark()
        if fails(buf):
            buf.mark()
        buf.rewind(mark)
    return before - buf.empty(3).ctypes.data


def test_exceptions_between_mark_and_rewind() -> None:
    buffer = ft.ScratchBuffer()
    for _ in range(1000):
        with pytest.raises(ValueError, match="on the way"):
            between(buffer, 30)
        assert buffer.used == 0
    assert around(buffer) == 0
    assert buffer.used == 0


def new_buffer() -> Any:
    return ft.ScratchBuffer()


@njit
def from_object_mode() -> Any:
    with numba.objmode(buf=scratch_buffer):
        buf = new_buffer()
    return buf.empty(3)


def test_a_buffer_from_object_mode() -> None:
    """It would die there while compiled code has its address."""
    with pytest.raises(numba.core.errors.NumbaError, match="pass it as an argument"):
        from_object_mode()
