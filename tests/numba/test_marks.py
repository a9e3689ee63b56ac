"""Marks in compiled code: nested, in the wrong order, of another buffer, and where they are not allowed."""

from typing import Any

import pytest

import firsttouch as ft
from tests.numba.compiling import njit, numba


@njit
def twice(buf: Any) -> None:
    mark = buf.mark()
    buf.rewind(mark)
    buf.rewind(mark)


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


def test_another_buffers_mark() -> None:
    with pytest.raises(ValueError, match="another buffer made it"):
        another(ft.ScratchBuffer(), ft.ScratchBuffer())


@njit
def rewinds(buf: Any, mark: Any) -> None:
    buf.rewind(mark)


@njit
def as_argument(buf: Any) -> None:
    rewinds(buf, buf.mark())


@njit
def as_result(buf: Any) -> Any:
    return buf.mark()


@pytest.mark.parametrize("program", [as_argument, as_result])
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
