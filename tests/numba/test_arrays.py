"""Arrays created in compiled code: like NumPy's of the same shape and dtype, aligned to 64 bytes."""

import itertools
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.numba.compiling import njit, numba


@njit
def arrays(buf: Any) -> Any:
    return (
        buf.empty(7),
        buf.empty((2, 3), np.int16),
        buf.zeros(shape=(4, 1, 5), dtype=np.float32),
        buf.zeros((), np.complex128),
        buf.empty((0, 5), dtype=np.bool_),
        buf.zeros(np.uint8(3), "u1"),
        buf.zeros(3, int),
        buf.zeros(2, float),
    )


def test_shapes_and_dtypes() -> None:
    buffer = ft.ScratchBuffer()
    found = arrays(buffer)
    kinds = [(a.shape, a.dtype.str) for a in found]
    wanted = [(7,), (2, 3), (4, 1, 5), (), (0, 5), (3,), (3,), (2,)]
    assert kinds == list(zip(wanted, ["<f8", "<i2", "<f4", "<c16", "|b1", "|u1", "<i8", "<f8"], strict=True))
    for array in found:
        assert array.ctypes.data % 64 == 0
        assert array.flags.c_contiguous
        assert array.flags.writeable
        assert array.flags.aligned
    begins = sorted((a.ctypes.data, a.ctypes.data + a.nbytes) for a in found)
    assert all(end <= begin for (_, end), (begin, _) in itertools.pairwise(begins))


@njit
def dirty_then_zeros(buf: Any, n: int) -> Any:
    total = 0
    for _ in range(3):
        mark = buf.mark()
        x = buf.zeros(n, np.uint8)
        total += x.sum()
        x[:] = 255
        buf.rewind(mark)
    return total


@pytest.mark.parametrize("n", [0, 1, 63, 64, 65, 4096, 20_000, 300_000])
def test_zeros_read_zero(n: int) -> None:
    buffer = ft.ScratchBuffer()
    assert dirty_then_zeros(buffer, n) == 0
    assert buffer.used == 0


@njit
def record(buf: Any, dtype: Any) -> Any:
    x = buf.zeros(3, dtype)
    x[1].b = 2.5
    return x


def test_records() -> None:
    dtype = np.dtype([("a", "i4"), ("b", "f8")])
    found = record(ft.ScratchBuffer(), dtype)
    assert found.dtype == dtype
    assert found["b"].tolist() == [0, 2.5, 0]


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("buf.empty(3.5)", "a shape is an int"),
        ("buf.empty(3, 5)", "a dtype one that Numba knows"),
        ("buf.empty()", "shape"),
        ("buf.empty(3, np.int8, 1)", "too many"),
        ("buf.empty(3, order='C')", "order"),
        ("buf.rewind(3)", "rewind"),
        ("buf.mark(1)", "mark"),
        ("buf.bump(3)", "bump"),
    ],
)
def test_what_does_not_compile(source: str, says: str) -> None:
    scope: dict[str, Any] = {"np": np}
    exec(f"def f(buf):\n    {source}", scope)
    with pytest.raises(numba.core.errors.NumbaError, match=says):
        njit(scope["f"])(ft.ScratchBuffer())
