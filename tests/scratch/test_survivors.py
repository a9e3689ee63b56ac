"""Arrays that outlive their scope, kept by whatever can refer to one: never a dangling byte."""

import functools
import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from firsttouch import _firsttouch
from tests.scratch.arrays import CHUNK, LARGE, MIDDLE, Kept, churn
from tests.trust.expressions import Own

pytestmark = pytest.mark.quick


def test_what_is_in_the_array_lives_as_long() -> None:
    class Item:
        pass

    item = Item()
    gone = weakref.ref(item)
    with ft.scratch():
        objects = np.full(MIDDLE, item, object)
        strings = np.array(["long enough to be kept apart from its array" * 3] * 2_000, np.dtypes.StringDType())
    del item
    churn()
    gc.collect()
    assert all(each is gone() for each in objects)
    assert strings[1_999].endswith("array")
    del objects
    assert gone() is None


def test_a_buffer_dropped_while_arrays_live() -> None:
    kept = Kept()
    for size in (2_000, MIDDLE, LARGE):
        storage = np.empty(2 * CHUNK, np.uint8)
        gone = weakref.ref(storage)
        for make in (ft.ScratchBuffer, functools.partial(ft.FixedBuffer, storage)):
            buffer: Any = make()
            with ft.scratch(buffer) as s:
                kept.make(size)
                kept.make(size, s.empty)
            kept.make(size, buffer.empty)
            dead = weakref.ref(buffer)
            del buffer, s, make
            gc.collect()
            assert dead() is None
            churn()
            assert kept.intact()
        del storage
        assert gone() is not None
        kept.clear()
        gc.collect()
        assert gone() is None


@pytest.mark.parametrize("on", [lambda pool: pool, lambda pool: ft.limited(pool, "1 GiB"), ft.filled])
def test_large_arrays_outlive_what_is_behind_their_buffer(on: Callable[[ft.Allocator], ft.Allocator]) -> None:
    with ft.scratch(ft.ScratchBuffer(upstream=on(ft.pool(decay=None)))):
        array = np.ones(LARGE, np.uint8)  # it keeps no allocator, only what serves the process
    churn()
    assert "decay=None" in str(ft.get_allocator(array))
    array.resize(2 * LARGE, refcheck=False)
    assert array[:LARGE].all()


def test_a_pool_with_a_list_goes_with_the_last_array_behind_its_buffer() -> None:
    own = Own()
    with ft.scratch(ft.ScratchBuffer(upstream=ft.pool(own))):
        array = np.ones(LARGE, np.uint8)
    churn()
    assert array.all()
    del array
    _firsttouch.deliver()
    assert not own.kept


def test_a_buffer_on_an_array_that_an_adaptor_knows() -> None:
    limited = ft.limited(ft.pool(), "1 GiB")
    storage = limited.zeros(1 << 20, "u1")
    buffer = ft.FixedBuffer(storage)
    first = buffer.full(1000, 3, "u1")
    assert np.shares_memory(first, storage)
    del first
    other = limited.full(1 << 20, 9, "u1")
    storage[:] = 1
    assert (other == 9).all()
