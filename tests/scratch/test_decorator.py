"""@scratch: a scope for each call of a function, of whatever kind, its result, and what escapes otherwise."""

import dataclasses
import functools
import inspect
import pickle
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.scratch.arrays import Kept, churn

pytestmark = pytest.mark.quick

#: Numbers whose arrays lie in a chunk.
MIDDLE = 1_000
BUFFER = ft.ScratchBuffer("1 MiB")


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
    assert ft.buffers.default_buffer().used == 0


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


def locked() -> Any:
    x = np.full(MIDDLE, 7.0)
    x.flags.writeable = False
    return x


RESULTS: dict[str, tuple[Any, bool]] = {
    "alone": (lambda: np.full(MIDDLE, 7.0), True),
    "read-only": (locked, True),
    "in Fortran's order": (lambda: np.full((MIDDLE // 100, 100), 7.0, order="F"), True),
    "of structures": (lambda: np.full(MIDDLE, 7, [("a", "f8"), ("b", "i8")]), True),
    "of objects": (lambda: np.full(MIDDLE, 7, object), True),
    "a view": (lambda: np.full((MIDDLE, 2), 7.0)[::2, 1], True),
    "in a tuple": (lambda: (np.full(MIDDLE, 7.0), 1), True),
    "twice": (lambda: (locked(),) * 2, True),
    "in a list": (lambda: [np.full(MIDDLE, 7.0), 2], True),
    "in a dict": (lambda: {None: np.full(MIDDLE, 7.0)}, True),
    "deeper": (lambda: [(np.full(MIDDLE, 7.0),)], False),
    "in a dataclass": (lambda: Holder(np.full(MIDDLE, 7.0)), False),
    "in a set": (lambda: frozenset([Holder(np.full(MIDDLE, 7.0))]), False),
    "of a subclass": (lambda: np.ma.masked_array(np.full(MIDDLE, 7.0)), False),
    "larger than its memory": (lambda: np.broadcast_to(np.full(MIDDLE, 7.0), (9, MIDDLE)), False),
    "with its view": (lambda: (x := np.full(MIDDLE, 7.0), x[1:]), False),
    "with its view in a list": (lambda: (x := np.full(MIDDLE, 7.0), [x[1:]]), False),
    "with its view in a dict in a list": (lambda: (x := np.full(MIDDLE, 7.0), [{None: x[1:]}]), False),
    "with another list": (lambda: (np.full(MIDDLE, 7.0), [1, np.ones(3)]), True),
}


@dataclasses.dataclass(eq=False, frozen=True)
class Holder:
    array: Any


@pytest.mark.parametrize("name", RESULTS)
def test_results_are_copied_where_that_changes_nothing_else(name: str) -> None:
    """Alone and in tuples, lists and dicts; all else stays as it is, and keeps its memory."""
    make, copies = RESULTS[name]
    function = ft.scratch(BUFFER)(make)
    result, plain = function(), make()
    assert (BUFFER.used == 0) == copies
    assert type(result) is type(plain)
    if isinstance(plain, np.ndarray):
        assert result.flags.writeable == plain.flags.writeable
        assert result.flags.f_contiguous or not plain.flags.f_contiguous
        assert np.array_equal(result, plain)
    churn()
    if name.startswith("with its view"):
        result[0][:] = 5
        view = result[1]
        while not isinstance(view, np.ndarray):
            view = view[0] if isinstance(view, list) else view[None]
        assert (view == 5).all()
        del view
    elif isinstance(result, dict):
        assert (result[None] == 7).all()
    elif name == "twice":
        assert result[0] is result[1]
    del result
    assert BUFFER.used == 0


def test_lists_and_dicts_stay_the_same_objects() -> None:
    @ft.scratch(BUFFER)
    def extended(x: Any) -> Any:
        x.append(np.full(MIDDLE, 7.0))
        x.append(x)
        return x

    given: list[Any] = []
    assert extended(given) is given is given[1]
    assert BUFFER.used == 0
    assert (given[0] == 7).all()


def test_a_dict_that_others_change_meanwhile() -> None:
    """As another thread may between any two items."""
    cache: dict[Any, Any] = dict.fromkeys(range(9), ())

    @ft.scratch(BUFFER)
    def cached() -> Any:
        cache["mine"] = np.full(MIDDLE, 7.0)
        sys.setprofile(lambda *_: cache.update({len(cache): ()}))
        return cache

    try:
        assert cached() is cache
    finally:
        sys.setprofile(None)
    assert BUFFER.used == 0


def test_a_result_goes_to_the_scope_around_it() -> None:
    kept = Kept()
    outer = ft.ScratchBuffer("1 MiB")
    with ft.scratch(outer):
        array = doubled(np.ones(5 * MIDDLE, np.uint8))
        assert outer.used >= 5 * MIDDLE
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


def numbers() -> Iterator[int]:
    yield 1


async def waits() -> None: ...


async def later() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (numbers, "numbers.*a generator or coroutine.*with scratch"),
        (later, "later.*a generator or coroutine.*with scratch"),
        (waits, "waits.*a generator or coroutine.*with scratch"),
        (functools.partial(numbers), "a generator or coroutine"),
        (functools.partial(functools.partial(waits)), "a generator or coroutine"),
        (Holder, "not <class .*Holder"),
        (classmethod(lambda cls: 1), "not <classmethod"),
        (5, "not 5"),
        ("text", "not 'text'"),
    ],
)
@pytest.mark.parametrize("way", [ft.scratch, ft.scratch(), ft.scratch(BUFFER)])
def test_what_can_not_be_decorated_says_what_to_do(way: Any, function: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        way(function)
