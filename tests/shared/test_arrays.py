"""shared(): an ordinary array that is pickled as a handle."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from firsttouch import sharing
from firsttouch.sharing import SharedArray
from tests.probe import MIB
from tests.shared.work import memory_files

pytestmark = pytest.mark.quick

PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)


def through(a: np.ndarray, protocol: int = pickle.HIGHEST_PROTOCOL) -> Any:
    return pickle.loads(pickle.dumps(a, protocol))


@pytest.mark.parametrize(
    "dtype", [float, np.float32, np.uint8, "U3", "S", [("a", "i4"), ("b", "f8")], "M8[ns]", bool, "(3,2)f4"]
)
@pytest.mark.parametrize("shape", [0, 7, (), (3, 0), (5, 6), [2, 3, 4], np.int64(4)])
@pytest.mark.parametrize("order", ["C", "F"])
def test_it_is_as_zeros_are(shape: Any, dtype: Any, order: Any) -> None:
    expected = np.zeros(shape, dtype, order)
    a = ft.shared(shape, dtype, order)
    assert isinstance(a, np.ndarray)
    assert (a.shape, a.dtype) == (expected.shape, expected.dtype)
    assert a.size == 0 or a.strides == expected.strides
    assert np.array_equal(a, expected)
    assert a.flags.writeable
    arrived = through(a)
    assert type(arrived) is SharedArray  # in its own process it is what it was
    assert (arrived.shape, arrived.dtype) == (a.shape, a.dtype)
    assert arrived.size < 2 or arrived.strides == a.strides


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pickle_is_small_and_the_memory_the_same(protocol: int) -> None:
    a = ft.shared((1000, 1000))
    assert len(pickle.dumps(a, protocol)) < 500
    b = through(a, protocol)
    b[3, 4] = 5
    assert a[3, 4] == 5
    assert np.shares_memory(a, b)


@pytest.mark.parametrize(
    "view",
    ["a[3]", "a[1:]", "a[::-2, 3:9]", "a.T", "a[:, ::-1]", "a[2, 5]", "a.reshape(-1)[7:19:4]", "a[5:5]", "a[None]"],
)
def test_views_arrive_as_views(view: str) -> None:
    a = ft.shared((20, 30))
    a[...] = np.arange(600).reshape(20, 30)
    part = np.asarray(eval(view)) if view == "a[2, 5]" else eval(view)
    arrived = through(part)
    assert np.array_equal(arrived, part)
    if isinstance(part, SharedArray) and part.size:
        arrived[...] = -1
        assert (part == -1).all()
        assert (a == -1).sum() == part.size


def test_a_view_of_a_view_and_of_another_type() -> None:
    a = ft.shared(100, np.float64)
    words = a[10:50].view(np.uint64)[::3]
    through(words)[:] = 0x3FF0_0000_0000_0000
    assert (a[10:50:3] == 1).all()
    assert a.sum() == words.size
    fields = ft.shared(10, [("a", "i4"), ("b", "f8")])
    through(fields["b"])[:] = 2
    assert (fields["b"] == 2).all()
    assert (fields["a"] == 0).all()


@pytest.mark.parametrize("strided", [np.lib.stride_tricks.as_strided, np.lib.stride_tricks.sliding_window_view])
def test_views_by_strides_arrive_as_views(strided: Any) -> None:
    """Their base is an object of NumPy's own, behind which the array is."""
    a = ft.shared(1000)
    a[:] = np.arange(1000)
    view = strided(a, (5,), subok=True)
    assert np.shares_memory(ft.sharing.share(np.asarray(view)), a)
    assert len(pickle.dumps(view)) < 500
    arrived = through(view)
    assert np.array_equal(arrived, view)
    a[3] = -1
    assert arrived.flat[3] == -1
    beyond = np.lib.stride_tricks.as_strided(a[-1:], (2,), (1 << 21,), subok=True)
    assert sharing._mapping_of(beyond) is None  # no handle for what is not there


def test_what_is_computed_is_an_ordinary_array() -> None:
    a = ft.shared((3, 4))
    for result in (a + 1, 1 + a, np.sqrt(a), a @ a.T, a.sum(axis=0), np.concatenate([a, a]), np.where(a, 1, 2)):
        assert type(result) is np.ndarray
    assert isinstance(a.sum(), np.float64)
    kept = a
    a += 1
    np.add(a, 1, out=a)
    assert a is kept
    assert (type(a), a[0, 0]) == (SharedArray, 2)


def test_a_copy_is_pickled_as_any_array() -> None:
    a = ft.shared(10**4)
    for other in (a.copy(), copy.deepcopy(a), copy.copy(a), a.astype(np.float32), np.asarray(a) * 1):
        assert not np.shares_memory(a, other)
        assert len(pickle.dumps(other)) > 10**4
        arrived = through(other)
        assert type(arrived) is np.ndarray
        assert np.array_equal(arrived, a)


def test_an_array_that_cannot_be_written_arrives_so() -> None:
    a = ft.shared(1000)
    fixed = a.view()
    fixed.flags.writeable = False
    for arrived in (through(fixed), through(fixed[10:20])):
        assert not arrived.flags.writeable
        with pytest.raises(ValueError, match="read-only"):
            arrived[0] = 1
    assert through(a).flags.writeable


def test_share_copies_once_and_hands_on() -> None:
    x = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    a = ft.sharing.share(x)
    assert np.array_equal(a, x)
    assert a.strides == x.strides
    assert not np.shares_memory(a, x)
    again = ft.sharing.share(through(a)[1:])
    assert np.shares_memory(again, a)
    assert len(pickle.dumps(again)) < 500
    assert ft.sharing.share([1, 2, 3]).tolist() == [1, 2, 3]
    assert ft.sharing.share(a) is not None
    with pytest.raises(TypeError, match="cannot be shared"):
        ft.sharing.share([None])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a masked array is two arrays"):
        ft.sharing.share(np.ma.array([1, 2, 3], mask=[False, True, False]))


@pytest.mark.linux("/proc")
def test_the_memory_goes_with_the_last_array() -> None:
    before = memory_files()
    a = ft.shared(1000)
    part = a[10:20]
    del a
    assert memory_files() == before + 1
    assert part.sum() == 0
    arrived = through(part)
    del part
    assert memory_files() == before + 1
    del arrived
    assert memory_files() == before


def test_the_inspection_tells_the_truth() -> None:
    a = ft.shared(3 * MIB, np.uint8)
    ft.touch(a)
    assert ft.receipt(a[100:]) is None
    found = ft.inspect(a)
    assert (found.shared, found.allocator, found.real) == (True, None, 3 * MIB)
    assert "processes that map it" in str(found)
    assert not ft.inspect(np.zeros(MIB)).shared
    lazy = ft.inspect(ft.shared(3 * MIB, np.uint8))
    assert (lazy.absent, lazy.real) == (3 * MIB, 0)


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ((-1,), ValueError, "negative dimensions"),
        (("3",), TypeError, "give a number or a tuple of numbers"),
        ((2.5,), TypeError, "give a number or a tuple of numbers"),
        (((2**40, 2**40),), ValueError, "more than can be counted"),
        ((3, object), TypeError, "its items are addresses"),
        ((3, [("a", "O")]), TypeError, "its items are addresses"),
        ((3, "no type"), TypeError, "no type"),
        ((3, float, "K"), ValueError, "order='K': give 'C' or 'F'"),
        ((2**55,), MemoryError, "256 PiB"),
    ],
)
def test_bad_arguments(arguments: tuple[Any, ...], error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        ft.shared(*arguments)
