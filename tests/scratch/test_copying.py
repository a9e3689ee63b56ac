"""copied(): the result of a decorated function, on memory of its own, and otherwise unchanged."""

import gc
from collections import namedtuple
from typing import Any, NamedTuple

import numpy as np
import pytest

from firsttouch.buffers.copying import arrays, copied

pytestmark = pytest.mark.quick


def copied_out(result: Any, *args: Any, but: tuple[Any, ...] = (), **kwargs: Any) -> Any:
    """The result where every array is the scope's, except for `but` and the arguments."""
    outside = [*args, *kwargs.values(), *but]
    return copied(result, args, kwargs, lambda array: not any(array is each for each in outside))


def assert_copy(new: Any, old: Any) -> None:
    assert new is not old
    assert type(new) is type(old)
    assert not np.shares_memory(new, old)
    assert (new.dtype, new.shape) == (old.dtype, old.shape)
    assert new.flags.writeable == old.flags.writeable
    assert new.flags.aligned
    np.testing.assert_array_equal(new, old)


def locked() -> Any:
    array = np.ones(3)
    array.flags.writeable = False
    return array


ARRAYS = {
    "one": np.arange(10.0),
    "Fortran's order": np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    "no dimension": np.array(3.5),
    "no items": np.empty((0, 3)),
    "readonly": locked(),
    "structured": np.array([(1, 2.5), (3, 4.5)], [("a", "i4"), ("b", "f8")]),
    "structured with objects": np.array([(1, [2]), (3, None)], [("a", "i4"), ("b", object)]),
    "objects": np.array([None, "x", 3], object),
    "strings": np.array(["a", "much longer than a small string"], np.dtypes.StringDType()),
    "dates": np.array(["2026-01-02"], "M8[D]"),
    "a part of another": np.arange(20.0).reshape(4, 5)[1:3, ::2],
    "backwards": np.arange(10)[::-1],
    "no bytes in an item": np.zeros(3, "V0"),
    "other byte order": np.arange(4, dtype=">i4"),
    "permuted": np.ones((2, 3, 4)).transpose(1, 0, 2).copy(order="K"),
}


@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_one_array(array: Any) -> None:
    new = copied_out(array)
    assert_copy(new, array)
    assert new.flags.owndata
    assert new.flags.f_contiguous >= array.flags.f_contiguous
    assert new.flags.c_contiguous >= array.flags.c_contiguous
    assert copied_out([array])[0].tolist() == array.tolist()


def test_what_is_nobodys_stays() -> None:
    class Own:
        held = np.ones(3)

    for thing in (None, 1, "text", 2.5, b"", np.float64(1), Own(), [1, [2]], (1, {"a": 2}), {1, 2}, range(3), int):
        assert copied_out(thing) is thing
    array = np.ones(3)
    for result in (array, [array], (array, (array,)), {"a": [array]}):
        assert copied(result, (), {}, lambda _: False) is result


def test_an_argument_returned_is_itself() -> None:
    array, other = np.ones(3), np.ones(4)
    assert copied_out(array, array) is array
    assert copied_out(array, x=array) is array
    pair = copied_out((array, other), array)
    assert pair[0] is array
    assert_copy(pair[1], other)
    kept = [other]
    assert copied_out(kept, kept) is kept
    assert kept[0] is other


def test_an_argument_on_the_same_memory_is_itself_too() -> None:
    one, two, three = np.ones(3), np.ones(4), np.ones(5)

    def owned(array: Any) -> bool:
        return True

    assert copied(one, (one,), {}, owned) is one
    assert copied(one, (), {"x": one}, owned) is one
    assert copied((one, two), (one, two), {}, owned)[0] is one
    pair = copied((one, three), (one, two), {}, owned)
    assert pair[0] is one
    assert_copy(pair[1], three)
    found = copied([one, (three, (three,))], (one,), {}, owned)
    assert found[0] is one
    assert_copy(found[1][0], three)
    assert found[1][1][0] is found[1][0]


def test_what_hangs_on_an_argument_is_left() -> None:
    inner = [np.ones(3)]
    state = {"inner": inner}
    assert copied_out(inner, state, but=()) is inner
    result = copied_out([inner, np.zeros(2)], state)
    assert result[0] is inner
    assert inner[0].tolist() == [1, 1, 1]


def test_an_array_in_an_arguments_list_is_copied_where_it_is_returned() -> None:
    out: list[Any] = []
    array = np.ones(3)
    out.append(array)
    assert_copy(copied_out(array, out), array)
    assert out[0] is array


def test_containers_are_made_again_around_arrays_only() -> None:
    array, plain = np.ones(3), [1, 2]
    held = {"list": [array, plain], "tuple": (array, 1, ((array, ()), plain)), "other": plain}
    new = copied_out(held)
    assert new is not held
    assert list(new) == list(held)
    assert new["other"] is plain
    assert new["list"][1] is plain
    assert new["list"][0] is new["tuple"][0] is new["tuple"][2][0][0]
    assert new["tuple"][2][1] is plain
    assert_copy(new["list"][0], array)
    assert held["list"][0] is array


def test_named_tuples() -> None:
    class Pair(NamedTuple):
        left: Any
        right: Any = 2

    Old = namedtuple("Old", "a b")

    class Wider(Old):
        pass

    array = np.ones(3)
    wider = Wider(array, 1)
    vars(wider)["more"] = array
    for old in (Pair(array), Old(1, array), wider):
        new = copied_out(old)
        assert type(new) is type(old)
        assert len(new) == 2
    assert vars(new)["more"] is new.a
    assert_copy(new.a, array)
    found = np.linalg.svd(np.eye(3))
    new = copied_out(found)
    assert type(new) is type(found)
    assert_copy(new.S, found.S)


def test_circles_and_depth() -> None:
    array = np.ones(3)
    ring: list[Any] = [array]
    ring.append((ring, {"ring": ring}))
    new = copied_out(ring)
    assert new is not ring
    assert new[1][0] is new
    assert new[1][1]["ring"] is new
    assert_copy(new[0], array)

    deep: Any = array
    for turn in range(50_000):
        deep = (deep,) if turn % 2 else [deep]
    new = copied_out(deep)
    while not isinstance(new, np.ndarray):
        (new,) = new
    assert_copy(new, array)


def test_arrays_of_objects() -> None:
    array, zero = np.ones(3), np.array(5.0)
    ragged = np.empty(4, object)
    ragged[0], ragged[1], ragged[2], ragged[3] = array, [array], zero, ragged
    ragged.flags.writeable = False
    new, half, same = copied_out((ragged, ragged[::2], array))
    assert new[0] is same is half[0] is new[1][0]
    assert new[3] is new
    assert type(new[2]) is np.ndarray
    assert not new.flags.writeable
    assert np.shares_memory(new, half)
    assert_copy(same, array)
    alone = copied(ragged, (), {}, lambda each: each is array)  # the array of objects itself is small, and NumPy's
    assert_copy(alone[0], array)
    assert alone[2] is zero
    pair = copied((ragged, ragged[::2]), (), {}, lambda each: each is array)
    assert np.shares_memory(*pair)
    assert pair[0][0] is pair[1][0] is not array
    objects = np.array([None, 1, None], object)
    objects[2] = array
    pair = copied(([objects[:2]], objects[1:]), (), {}, lambda each: each is array)
    assert np.shares_memory(pair[0][0], pair[1])  # though nothing in the first one changes
    assert pair[1][1] is not array
    out: list[Any] = [ragged]
    assert copied_out(ragged, out)[0] is not array  # it was made inside, and only put there
    single = np.empty((), object)
    single[()] = array
    assert_copy(copied_out(single)[()], array)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_what_means_more_than_it_holds_is_left() -> None:
    class Rows(list[Any]):
        pass

    array = np.ones(3)
    for kept in (np.ma.array([1, 2]), np.matrix([[1]]), Rows([array]), {"a": array}.values(), iter([array])):
        assert copied_out(kept) is kept
        assert copied_out([kept, array])[0] is kept


def test_scalars_of_structured_types() -> None:
    record = np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")])[0]
    record["a"] = 7
    new = copied_out((record, [record]))
    assert new[0] is new[1][0]
    assert new[0].item() == (7, 2.5)
    assert not np.shares_memory(new[0].base, record.base)


def test_arrays_of_a_result() -> None:
    first, second = np.ones(3), np.ones(4)
    ring: list[Any] = [first, (second, 5)]
    ring.append(ring)
    assert {id(each) for each in arrays({"a": ring})} == {id(first), id(second)}


def test_nothing_is_held_afterwards() -> None:
    array = np.ones(3)
    before = gc.get_referrers(array)
    copied_out([array, (array,)])
    assert len(gc.get_referrers(array)) == len(before)
