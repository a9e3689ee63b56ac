"""Marks in compiled code: nested, in the wrong order, of another buffer, and where they are not allowed."""

from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.numba.compiling import njit, numba


@njit
def addresses(buf: Any) -> Any:
    first = buf.mark()
    a = buf.empty(10).ctypes.data
    second = buf.mark()
    b = buf.empty(10).ctypes.data
    buf.rewind(second)
    c = buf.empty(10).ctypes.data
    buf.rewind(first)
    d = buf.empty(10).ctypes.data
    return a, b, c, d


def test_rewinding_uses_memory_again() -> None:
    buffer = ft.ScratchBuffer()
    a, b, c, d = addresses(buffer)
    assert b == c == a - 128
    assert a == d


@njit
def to_the_first(buf: Any) -> Any:
    first = buf.mark()
    a = buf.empty(10).ctypes.data
    for _ in range(5):
        buf.mark()
        buf.empty(1000)
    buf.rewind(first)
    return a == buf.empty(10).ctypes.data


def test_an_earlier_mark_ends_the_later_ones() -> None:
    assert to_the_first(ft.ScratchBuffer())


@njit
def twice(buf: Any) -> None:
    mark = buf.mark()
    buf.rewind(mark)
    buf.rewind(mark)


@njit
def one_that_is_gone(buf: Any) -> Any:
    gone = buf.mark()
    buf.rewind(gone)
    before = buf.empty(30, np.int64)
    before[:] = 1
    buf.mark()
    inside = buf.empty(30, np.int64)
    inside[:] = 2
    buf.rewind(gone)  # as good as the mark that has its place now
    after = buf.empty(30, np.int64)
    after[:] = 3
    return before.sum() + inside.sum() + after.sum()


@njit
def wrong_order(buf: Any) -> None:
    first = buf.mark()
    second = buf.mark()
    buf.rewind(first)
    buf.rewind(second)


@pytest.mark.parametrize("program", [twice, wrong_order])
def test_marks_that_are_gone(program: Any) -> None:
    buffer = ft.ScratchBuffer()
    for _ in range(2):
        with pytest.raises(ValueError, match="rewound to"):
            program(buffer)
        assert buffer.used == 0


@njit
def another(one: Any, other: Any) -> None:
    other.mark()
    mark = one.mark()
    other.rewind(mark)


def test_a_mark_that_is_gone_frees_nothing_that_lives() -> None:
    buffer = ft.ScratchBuffer()
    assert one_that_is_gone(buffer) == 30 * (1 + 2 + 3)
    assert buffer.used == 0


def test_another_buffers_mark() -> None:
    with pytest.raises(ValueError, match="another buffer made it"):
        another(ft.ScratchBuffer(), ft.ScratchBuffer())


@njit
def caught(buf: Any) -> int:
    try:
        wrong_order(buf)
    except Exception:  # noqa: BLE001, RUF100 - Numba knows no other
        return 1
    return 0


def test_caught_in_compiled_code() -> None:
    assert caught(ft.ScratchBuffer()) == 1


@njit
def deep(buf: Any, depth: int) -> Any:
    mark = buf.mark()
    x = buf.empty(50, np.int64)
    x[:] = depth
    below = deep(buf, depth - 1) if depth > 0 else 0
    total = x.sum() + below
    buf.rewind(mark)
    return total


def test_recursion() -> None:
    buffer = ft.ScratchBuffer()
    assert deep(buffer, 200) == 50 * sum(range(201))
    assert buffer.used == 0


@njit
def rewinds(buf: Any, mark: Any) -> None:
    buf.rewind(mark)


@njit
def as_argument(buf: Any) -> None:
    rewinds(buf, buf.mark())


@njit
def as_result(buf: Any) -> Any:
    return buf.mark()


@njit
def in_tuple(buf: Any) -> Any:
    return (buf.mark(), 1)


@njit
def in_list(buf: Any) -> None:
    marks = [buf.mark()]
    buf.rewind(marks[0])


@pytest.mark.parametrize("program", [as_argument, as_result, in_tuple, in_list])
def test_marks_stay_in_their_function(program: Any) -> None:
    with pytest.raises(numba.core.errors.NumbaError, match="a mark stays in the function that made it"):
        program(ft.ScratchBuffer())


@njit
def generator(buf: Any) -> Any:
    yield buf.empty(3)


@njit
def kept(buf: Any) -> Any:
    return [buf]


@pytest.mark.parametrize("program", [generator, kept])
def test_buffers_stay_in_their_call(program: Any) -> None:
    with pytest.raises(numba.core.errors.NumbaError, match="pass it as an argument"):
        program(ft.ScratchBuffer())


GLOBAL = ft.ScratchBuffer()


@njit
def of_a_global() -> Any:
    return GLOBAL.empty(3)


def test_a_global_buffer() -> None:
    with pytest.raises(numba.core.errors.NumbaError, match="address differs in every process"):
        of_a_global()


@njit
def same(buf: Any) -> Any:
    return buf


def test_buffers_as_results() -> None:
    buffer = ft.ScratchBuffer()
    assert same(buffer) is buffer
