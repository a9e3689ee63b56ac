"""copied(): arrays that share memory share it afterwards, in the same way."""

import itertools
from typing import Any

import numpy as np
import pytest

from firsttouch.buffers.copying import copied

pytestmark = pytest.mark.quick


def copied_out(result: Any) -> Any:
    return copied(result, (), {}, lambda _: True)


def assert_alike(new: Any, old: Any) -> None:
    """The copies have the values of the arrays, share memory with each other as those do, and none with those."""
    for one, other in zip(new, old, strict=True):
        assert steps(one) == steps(other) or not shared(other, old)
        assert (one.dtype, one.shape, one.flags.writeable) == (other.dtype, other.shape, other.flags.writeable)
        assert content(one) == content(other)
        assert one.flags.aligned >= other.flags.aligned
    for (one, two), (left, right) in zip(itertools.combinations(new, 2), itertools.combinations(old, 2), strict=True):
        assert (one is two) == (left is right)
        assert np.shares_memory(one, two) == np.shares_memory(left, right)
        if np.shares_memory(left, right):
            assert one.ctypes.data - two.ctypes.data == left.ctypes.data - right.ctypes.data
    assert not any(np.shares_memory(one, left) for one in new for left in old)


def content(array: Any) -> Any:
    return array.tolist() if array.dtype.hasobject else array.tobytes()


def steps(array: Any) -> list[int]:
    """The strides that are ever taken."""
    return [stride for stride, length in zip(array.strides, array.shape, strict=True) if length > 1 and array.size]


def shared(array: Any, others: Any) -> bool:
    return any(other is not array and np.shares_memory(array, other) for other in others)


def test_an_owner_and_its_views() -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    old = (x, x[1], x.T, x[..., ::-2], x.view(np.uint8), x, x.real, x[:0], x.reshape(-1))
    new = copied_out(old)
    assert_alike(new, old)
    assert new[0].flags.owndata
    assert new[1].base is new[0]
    new[0][1] = 7
    assert (new[1] == 7).all()


@pytest.mark.parametrize("order", ["C", "F"])
def test_views_without_their_owner(order: Any) -> None:
    x = np.array(np.arange(60).reshape(5, 12), order=order)
    old = (x[1:4, ::2], x[2:, 3:], x[1:3].T)
    assert_alike(copied_out(old), old)
    new = copied_out([x[0, :2], x[4, 5:]])  # apart from each other: each by itself, and not what lies between
    assert all(each.flags.owndata for each in new)


def test_one_that_overlaps_itself() -> None:
    x = np.arange(10.0)
    windows = np.lib.stride_tricks.sliding_window_view(x, 3)
    wide = np.broadcast_to(np.float32(4), (10**6, 10**6))  # a terabyte if it were written out
    for old in (windows, wide):
        new = copied_out(old)
        assert new.strides == old.strides
        assert not new.flags.writeable
        assert not np.shares_memory(new, old)
    assert wide[5, 7] == 4


def test_through_buffers_that_are_no_arrays() -> None:
    x = np.arange(100.0)
    old = (x, np.frombuffer(memoryview(x), np.float64), np.asarray(memoryview(x)[10:20]))
    assert_alike(copied_out(old), old)


def test_read_only_views() -> None:
    x = np.arange(10)
    view = x[2:]
    view.flags.writeable = False
    assert_alike(copied_out((x, view)), (x, view))
    x.flags.writeable = False
    assert_alike(copied_out((x, view)), (x, view))


def test_structured_and_complex_fields() -> None:
    record = np.zeros(5, [("a", "i1"), ("b", "f8"), ("c", "M8[s]")])
    old = (record, record["b"], record["c"][::2])
    assert_alike(copied_out(old), old)
    z = np.arange(5) * 1j
    assert_alike(copied_out((z.real, z.imag)), (z.real, z.imag))


def test_one_that_overlaps_itself_and_seems_to_fill_its_memory() -> None:
    x = np.arange(9, dtype=np.uint8)
    nine = np.lib.stride_tricks.as_strided(x, (3, 3), (2, 2))  # as many items as bytes, and not one for each
    old = (nine, x[:5])
    assert_alike(copied_out(old), old)


def test_aligned_as_it_was() -> None:
    record = np.zeros(5, {"names": ["a", "b"], "formats": ["i4", "f8"], "offsets": [4, 8], "itemsize": 16})
    old = (record["a"], record["b"])
    assert old[1].flags.aligned
    assert_alike(copied_out(old), old)


def test_references_between_the_items() -> None:
    x = np.array([[1], None, "x", [2]], object)
    old = (x[1:], x[:3])
    new = copied_out(old)
    assert new[0][0] is None
    assert np.shares_memory(*new)
    assert not np.shares_memory(new[0], x)
    record = np.zeros(4, [("a", object), ("b", "f8")])
    new = copied_out((record["b"], record))
    assert np.shares_memory(*new)
    assert not np.shares_memory(new[0], record)
    assert new[1]["a"].tolist() == [0, 0, 0, 0]


def test_what_nobody_can_copy_together_is_kept_together() -> None:
    text = np.array(["a", "b", "long enough for the heap of strings"], np.dtypes.StringDType())
    old = (text, text[1:])
    assert all(one is other for one, other in zip(copied_out(old), old, strict=True))


def test_many_views_of_one() -> None:
    x = np.zeros((3000, 4))
    new = copied_out([x, *x])
    new[0][:] = 5
    assert all((each == 5).all() for each in new)
