"""References to objects in arrays are counted exactly, and those to arrays in objects, too."""

import gc
import sys
import weakref
from collections.abc import Iterator

import numpy as np
import pytest

import firsttouch as ft
from tests.creation.kinds import ALLOCATORS

pytestmark = pytest.mark.quick


class Thing:
    pass


@pytest.mark.parametrize("kind", ALLOCATORS)
@pytest.mark.parametrize("size", [1, 10, 5000])
def test_objects_are_counted_exactly(kind: str, size: int) -> None:
    allocator = ALLOCATORS[kind]()
    thing = Thing()
    before = sys.getrefcount(thing)
    arrays = [
        allocator.full(size, thing),
        allocator.full(size, thing, dtype=object),
        allocator.array([thing] * size),
        allocator.full_like(np.empty(size), thing, dtype=object),
        allocator.array(np.full(size, thing)),
        allocator.array([(1, thing)] * size, dtype=[("a", int), ("b", object)]),
    ]
    assert sys.getrefcount(thing) == before + size * len(arrays)
    arrays.append(allocator.empty_like(arrays[0]))
    assert sys.getrefcount(thing) == before + size * (len(arrays) - 1)
    del arrays
    gc.collect()
    assert sys.getrefcount(thing) == before


@pytest.mark.parametrize("kind", ALLOCATORS)
def test_empty_objects_are_none_and_zeros_are_numbers(kind: str) -> None:
    allocator = ALLOCATORS[kind]()
    none, zero, one = sys.getrefcount(None), 0, 1
    for size in (1, 100, 10**5):
        assert all(item is None for item in allocator.empty(size, object))
        assert set(allocator.zeros(size, object)) == {zero}
        assert set(allocator.ones(size, object)) == {one}
    gc.collect()
    assert abs(sys.getrefcount(None) - none) < 1000  # None is counted until Python 3.12; others take and give some


def test_a_failing_iterator_gives_everything_back() -> None:
    allocator = ft.tracked(ft.malloc())
    things = [Thing() for _ in range(100)]
    gone = [weakref.ref(thing) for thing in things]

    def items() -> Iterator[Thing]:
        yield from things
        raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more"), ft.use(allocator):
        np.fromiter(items(), object)
    things.clear()
    gc.collect()
    assert [ref for ref in gone if ref() is not None] == []
    assert ft.stats(allocator).blocks == 0
