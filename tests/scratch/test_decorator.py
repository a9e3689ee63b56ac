"""@scratch: a scope for each call of a function, of whatever kind, and its result on ordinary memory."""

import dataclasses
import inspect
import pickle
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import fill, intact
from tests.scratch.arrays import LARGE, MIDDLE, Kept, churn

pytestmark = pytest.mark.quick

BUFFER = ft.ScratchBuffer()


def on_scratch(array: Any) -> bool:
    return "ScratchBuffer" in repr(ft.get_allocator(array)) or "scratch" in repr(ft.get_allocator(array))


@ft.scratch
def doubled(x: Any, *, times: int = 1) -> Any:
    """What is twice as much."""
    for _ in range(times):
        assert on_scratch(x + 0)
        x = x + x
    return x


def test_a_function_stays_what_it_is() -> None:
    assert doubled(np.ones(MIDDLE), times=3).sum() == 8 * MIDDLE
    assert (doubled.__name__, doubled.__doc__) == ("doubled", "What is twice as much.")
    assert doubled.__module__ == __name__
    assert list(inspect.signature(doubled).parameters) == ["x", "times"]
    assert pickle.loads(pickle.dumps(doubled)) is doubled
    assert inspect.isfunction(doubled.__wrapped__)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        doubled()
    assert ft.default_buffer().used == 0


def test_its_locals_are_gone_and_its_result_is_ordinary() -> None:
    sizes = (2_000, MIDDLE, 100_000)

    @ft.scratch(BUFFER)
    def made() -> Any:
        arrays = [np.empty(size, np.uint8) for size in sizes]
        for array in arrays:
            fill(array, array.size)
        return arrays, {"first": arrays[0][10:]}

    arrays, named = made()
    assert BUFFER.used == 0
    assert not any(map(on_scratch, arrays))
    assert np.shares_memory(arrays[0], named["first"])
    assert all(intact(array, array.size) for array in arrays)
    assert BUFFER.peak >= sum(sizes)


def test_kept_where_it_is() -> None:
    @ft.scratch(BUFFER, result="keep", escape="raise")
    def made() -> Any:
        temporary = np.ones(MIDDLE)
        return temporary * 2

    kept = [made() for _ in range(5)]
    assert all(map(on_scratch, kept))
    assert BUFFER.used >= 5 * 8 * MIDDLE
    churn()
    assert all((array == 2).all() for array in kept)
    kept.clear()
    assert BUFFER.used == 0


def test_an_argument_that_is_returned_is_itself() -> None:
    @ft.scratch
    def same(x: Any, y: Any = None) -> Any:
        x += 1
        return x, y, [x]

    one, two = np.zeros(MIDDLE), np.zeros(MIDDLE)
    found = same(one, y=two)
    assert found[0] is one is found[2][0]
    assert found[1] is two
    assert one.all()


def test_a_view_of_an_argument_is_one_still() -> None:
    """Also where the argument lies on the same buffer, in the scope around."""

    @ft.scratch(BUFFER)
    def tail(x: Any) -> Any:
        return x[1:], [x]

    @ft.scratch(BUFFER)
    def outer() -> Any:
        x = np.ones(5_000)
        view, (same,) = tail(x)
        view[:] = 7
        return x[1], same is x

    assert outer() == (7, True)


def test_what_the_fields_of_a_result_say_is_kept() -> None:
    @dataclasses.dataclass(frozen=True)
    class Result:
        values: Any
        step: int

    @ft.scratch(BUFFER)
    def solved() -> Any:
        x = np.arange(MIDDLE, dtype=np.float64)
        x.flags.writeable = False
        return Result(np.asfortranarray(x.reshape(100, -1)), 3), x

    result, x = solved()
    assert BUFFER.used == 0
    assert isinstance(result, Result)
    assert result.values.flags.f_contiguous
    assert not x.flags.writeable
    assert (x == np.arange(MIDDLE)).all()


def test_an_array_of_arrays_is_made_again() -> None:
    @ft.scratch(BUFFER)
    def made(count: int, *, keyword: Any = None) -> Any:
        found = np.empty(count, object)
        found[0], found[1] = np.full(MIDDLE, 7.0), keyword
        return found

    for count in (2, MIDDLE):  # on NumPy's own memory, and on the buffer
        for found in (made(count), made(count, keyword=5)):
            assert BUFFER.used == 0
            assert (found[0] == 7).all()


def test_an_array_whose_base_is_none_is_copied() -> None:
    @ft.scratch(BUFFER)
    def field() -> Any:
        return np.full(MIDDLE, 7, [("a", "f8"), ("b", "f8", 3)])[5]["b"]

    @ft.scratch(BUFFER)
    def bytes_of() -> Any:
        return np.frombuffer(memoryview(np.full(MIDDLE, 7.0))[10:]), np.asarray(memoryview(np.full(MIDDLE, 7.0)))

    @ft.scratch(BUFFER)
    def window() -> Any:
        return np.lib.stride_tricks.sliding_window_view(np.full(MIDDLE, 7.0)[10:], 3)

    found = field(), *bytes_of(), window()
    assert BUFFER.used == 0
    assert all((array == 7).all() for array in found)
    assert found[-1].strides == (8, 8)


def test_calls_inside_calls() -> None:
    @ft.scratch(BUFFER)
    def depth(x: Any, levels: int) -> Any:
        y = x + 1
        if levels:
            z = depth(y, levels - 1)
            assert (y == x + 1).all()
            return z + y
        return y

    found = depth(np.zeros(MIDDLE), 30)
    assert (found == sum(range(1, 32))).all()
    assert BUFFER.used == 0
    assert not on_scratch(found)


def test_a_result_goes_to_the_scope_around_it() -> None:
    kept = Kept()
    outer = ft.ScratchBuffer()
    with ft.scratch(outer):
        array = doubled(np.ones(MIDDLE, np.uint8))
        assert outer.used >= MIDDLE
        kept.add(array)
    churn()
    assert kept.intact()


def test_exceptions_pass_as_they_are() -> None:
    class MineError(Exception):
        pass

    mine = MineError()

    @ft.scratch(BUFFER)
    def fails() -> None:
        temporary = np.ones(MIDDLE)
        assert temporary.all()
        raise mine

    with pytest.raises(MineError) as error:
        fails()
    assert error.value is mine
    assert ft.get_allocator() == ft.numpy_default()
    mine.__traceback__ = None
    del error
    assert BUFFER.used == 0


def test_a_generator_that_is_returned_runs_outside() -> None:
    @ft.scratch(BUFFER)
    def squares() -> Any:
        x = np.arange(MIDDLE)
        return (int(each) ** 2 for each in x)

    found = squares()
    churn()
    assert sum(found) == sum(each**2 for each in range(MIDDLE))


def test_many_calls_leave_nothing_behind() -> None:
    for _ in range(2_000):
        doubled(np.ones(LARGE // 8), times=1)
    assert ft.default_buffer().used == 0
    assert ft.default_buffer().capacity <= 4 << 20
