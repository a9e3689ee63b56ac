"""Arrays own memory of the allocator, are aligned, and behave as ordinary arrays."""

import gc
import pickle
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.creation.kinds import ALLOCATORS, FUNCTIONS, calls

pytestmark = [pytest.mark.quick, pytest.mark.filterwarnings("ignore:the matrix subclass")]

SIZES = [1, 1000, 10**6]


def owner(array: Any) -> Any:
    while array.base is not None:
        array = array.base
    return array


@pytest.mark.parametrize("kind", ALLOCATORS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_memory_is_the_allocators_and_aligned(name: str, kind: str) -> None:
    allocator = ALLOCATORS[kind]()
    for arguments, named in calls(name):
        array = getattr(allocator, name)(*arguments, **named)
        plain = getattr(np, name)(*arguments, **named)
        holder = owner(array)
        assert holder.flags.owndata
        assert array.flags.owndata == plain.flags.owndata or name == "array"
        made_by = ft.get_allocator(holder)
        if kind == "pool" and holder.nbytes < ft.stats().small_limit:
            assert made_by == ft.numpy_default()  # as everywhere under pools
            continue
        assert made_by == allocator
        assert holder.ctypes.data % (4096 if kind == "aligned" else 64) == 0


@pytest.mark.parametrize("kind", ALLOCATORS)
@pytest.mark.parametrize("size", SIZES)
def test_resize_pickle_buffer_and_dlpack(kind: str, size: int) -> None:
    array = ALLOCATORS[kind]().array(np.arange(size))
    expected = np.arange(size)
    array.resize(size * 3, refcheck=False)
    assert array[:size].tolist() == expected.tolist()
    assert not array[size:].any()
    array.resize(max(1, size // 2), refcheck=False)
    expected = expected[: max(1, size // 2)]
    for protocol in (2, 5):
        assert pickle.loads(pickle.dumps(array, protocol)).tolist() == expected.tolist()
    view = memoryview(array)
    assert view.nbytes == array.nbytes
    assert np.asarray(view).ctypes.data == array.ctypes.data
    shared = np.from_dlpack(array)
    assert shared.ctypes.data == array.ctypes.data
    del array, view
    gc.collect()
    assert shared.tolist() == expected.tolist()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nothing_is_left_behind(name: str) -> None:
    allocator = ft.tracked(ft.malloc())
    kept = [getattr(allocator, name)(*arguments, **named) for arguments, named in calls(name)]
    living = ft.stats(allocator)
    assert living.blocks >= len(kept)
    assert living.in_use >= sum(array.nbytes for array in kept)
    del kept
    gc.collect()
    after = ft.stats(allocator)
    assert (after.blocks, after.in_use) == (0, 0)


def test_numpys_own_by_name_is_numpys_own() -> None:
    with ft.use():
        array = ft.numpy_default().ones(10**6)
        other = ft.zeros(10**6, allocator=ft.numpy_default())
    assert ft.get_allocator(array) == ft.get_allocator(other) == ft.numpy_default()
