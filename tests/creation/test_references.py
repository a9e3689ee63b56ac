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


def test_a_failing_iterator_gives_everything_back() -> None:
    allocator = ft.filled(ft.pool(), on_allocate=None)
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
