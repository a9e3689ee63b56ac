"""Our functions create the same arrays as NumPy's, except for where they lie; and nothing is left behind."""

import gc
import inspect
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.creation.kinds import ALLOCATORS, FUNCTIONS, assert_alike, calls

pytestmark = [pytest.mark.quick, pytest.mark.filterwarnings("ignore:the matrix subclass")]


def owner(array: Any) -> Any:
    while array.base is not None:
        array = array.base
    return array


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("kind", ALLOCATORS)
def test_results_are_numpys_in_memory_of_the_allocator(name: str, kind: str) -> None:
    allocator = ALLOCATORS[kind]()
    kept = []
    for arguments, named in calls(name):
        expected = getattr(np, name)(*arguments, **named)
        found = getattr(allocator, name)(*arguments, **named)
        assert_alike(getattr(ft, name)(*arguments, **named, allocator=allocator), expected, name)
        assert_alike(found, expected, name)
        holder = owner(found)
        assert holder.flags.owndata
        if kind == "pool" and holder.nbytes < ft.stats().small_limit:
            assert ft.get_allocator(holder) == ft.numpy_default()  # as everywhere under pools
        else:
            assert ft.get_allocator(holder) == allocator
            assert holder.ctypes.data % (4096 if kind == "aligned" else 64) == 0
        kept.append(found)
    assert len(kept) > 5
    if kind != "aligned":
        return
    living = ft.stats(allocator)
    assert living.blocks >= len(kept)
    assert living.in_use >= sum(array.nbytes for array in kept)
    del kept, found, holder
    gc.collect()
    after = ft.stats(allocator)
    assert (after.blocks, after.in_use) == (0, 0)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_without_an_allocator_it_is_the_current_one(name: str) -> None:
    for arguments, named in calls(name):
        if name == "array" and not isinstance(arguments[0], list):
            continue  # they may hand out what is there
        expected = getattr(np, name)(*arguments, **named)
        plain = getattr(ft, name)(*arguments, **named)
        with ft.use(ft.aligned(4096)) as allocator:
            found = getattr(ft, name)(*arguments, **named)
        assert_alike(found, expected, name)
        assert_alike(plain, expected, name)
        assert ft.get_allocator(plain) == ft.numpy_default()
        assert ft.get_allocator(found) == allocator


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures_are_numpys_and_allocator(name: str) -> None:
    ours = inspect.signature(getattr(ft, name))
    *others, allocator = ours.parameters.values()
    assert (allocator.name, allocator.kind, allocator.default) == ("allocator", allocator.KEYWORD_ONLY, None)
    method = inspect.signature(getattr(ft.Allocator, name))
    assert [one.name for one in method.parameters.values()] == ["self", *(one.name for one in others)]
    try:
        expected = inspect.signature(getattr(np, name))
    except ValueError:  # NumPy before 2.4 says nothing of its functions in C
        return
    assert others == list(expected.parameters.values())
