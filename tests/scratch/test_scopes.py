"""A scope as a block of code: its arrays come from the buffer, and their memory is reused afterwards."""

import math
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from firsttouch.arrays import __all__ as NAMES
from tests.scratch.arrays import CHUNK, LARGE, MIDDLE, SMALL, Kept, churn

pytestmark = pytest.mark.quick

NUMPY = ft.numpy_default()
PROTOTYPE = np.ones((200, 300))

#: How each constructor makes something of at least MIDDLE bytes.
CALLS: dict[str, Any] = {
    "arange": lambda make: make(20_000),
    "array": lambda make: make([[1.5] * 10_000]),
    "asarray": lambda make: make([1.5] * 10_000),
    "copy": lambda make: make(PROTOTYPE),
    "empty": lambda make: make((200, 300)),
    "empty_like": lambda make: make(PROTOTYPE),
    "eye": lambda make: make(100, dtype=np.float64),
    "fromiter": lambda make: make(range(20_000), np.int64),
    "full": lambda make: make((200, 300), 7.0, order="F"),
    "full_like": lambda make: make(PROTOTYPE, 3),
    "linspace": lambda make: make(0, 1, 10_000),
    "ones": lambda make: make(20_000, np.float32),
    "ones_like": lambda make: make(PROTOTYPE),
    "zeros": lambda make: make(20_000),
    "zeros_like": lambda make: make(PROTOTYPE, np.int16),
}


def test_arrays_come_from_the_buffer_and_their_memory_is_free_at_the_end() -> None:
    buffer = ft.ScratchBuffer()
    with ft.scratch(buffer) as s:
        assert s.buffer is buffer
        opened = s.is_open
        made = s.empty(MIDDLE, np.uint8)
        numpys = np.ones(MIDDLE, np.uint8)
        assert buffer.used >= 2 * MIDDLE
        del made, numpys
    assert (opened, s.is_open) == (True, False)
    assert buffer.used == 0
    assert buffer.peak >= 2 * MIDDLE
    assert ft.get_allocator() == NUMPY
    before = buffer.peak
    np.ones(3 * MIDDLE, np.uint8)
    assert buffer.peak == before


def test_every_constructor_has_its_test() -> None:
    assert set(CALLS) == set(NAMES)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("place", ["scope", "buffer"])
def test_every_constructor(name: str, place: str) -> None:
    buffer = ft.ScratchBuffer()
    with ft.scratch(buffer) as s:
        array = CALLS[name](getattr(s if place == "scope" else buffer, name))
        assert buffer.used >= array.nbytes >= MIDDLE
        assert array.ctypes.data % 64 == 0
        assert array.flags.owndata or name == "linspace"
        assert array.flags.writeable
        if not name.startswith("empty"):
            np.testing.assert_array_equal(array, CALLS[name](getattr(np, name)))
        del array
        assert buffer.used == 0


def test_constructors_give_small_arrays_too_and_numpy_keeps_its_own() -> None:
    with ft.scratch(ft.ScratchBuffer()) as s:
        array = s.ones(3)
        assert s.buffer.used >= 24
        assert array.ctypes.data % 64 == 0
        used = s.buffer.used
        small = np.ones(SMALL, np.uint8)
        assert s.buffer.used == used
        assert small.sum() == SMALL


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 1023, 1024, 4096, CHUNK // 8, CHUNK // 8 + 1, CHUNK, 5 * CHUNK])
def test_every_size_is_there_aligned_and_zeroed_where_that_was_asked(size: int) -> None:
    with ft.scratch(ft.ScratchBuffer()) as s:
        for make in (s.zeros, np.zeros):
            for _ in range(3):
                dirty = s.full(size, 0xEE, np.uint8)
                del dirty
                array = make(size, np.uint8)
                assert array.size == size
                assert not array.any()
                array[...] = 0xEE
                assert make is np.zeros or array.ctypes.data % 64 == 0
                del array


@pytest.mark.parametrize("alignment", [1, 64, 128, 4096, 1 << 16, 1 << 21])
@pytest.mark.parametrize("size", [0, 1, 1000, MIDDLE, LARGE])
def test_raw_memory(size: int, alignment: int) -> None:
    with ft.scratch(ft.ScratchBuffer()) as s:
        views = [s.alloc(size, alignment) for _ in range(3)]
        for value, view in enumerate(views):
            assert (view.nbytes, view.format, view.readonly, view.contiguous) == (size, "B", False, True)
            view[:] = bytes([value]) * size
            assert np.frombuffer(view, np.uint8).ctypes.data % alignment == 0
        assert all(view.tobytes() == bytes([value]) * size for value, view in enumerate(views))
    assert all(view.tobytes() == bytes([value]) * size for value, view in enumerate(views))


def test_scopes_nest_and_each_ends_with_its_own() -> None:
    buffer, kept = ft.ScratchBuffer(), Kept()
    with ft.scratch(buffer) as outer:
        kept.make()
        with ft.scratch(buffer) as inner:
            assert inner is not outer
            temporary = np.ones(MIDDLE)
            with ft.scratch() as other:
                assert other.buffer is ft.default_buffer() is not buffer
                kept.make()
            del temporary
        assert not inner.is_open
        assert outer.is_open
        used = buffer.used
        kept.make()
        assert buffer.used >= used + MIDDLE
        churn()
        assert kept.intact()
    assert kept.intact()
    kept.clear()
    assert buffer.used == 0 == ft.default_buffer().used


def test_the_same_scratch_object_again_and_inside_itself() -> None:
    scratch, kept = ft.scratch(ft.ScratchBuffer()), Kept()
    for _ in range(3):
        with scratch as first, scratch as second, scratch as third:
            assert len({id(first), id(second), id(third)}) == 3
            kept.make()
        assert not any(each.is_open for each in (first, second, third))
    assert kept.intact()


def test_an_exception_passes_and_the_scope_ends() -> None:
    buffer = ft.ScratchBuffer()
    with pytest.raises(ZeroDivisionError), ft.scratch(buffer) as s:
        math.log(len(np.ones(MIDDLE)) // 0)
    assert not s.is_open
    assert ft.get_allocator() == NUMPY
    assert buffer.used == 0


def test_inside_and_around_other_blocks() -> None:
    pool, buffer = ft.pool(), ft.ScratchBuffer()
    with ft.use(pool):
        with ft.scratch(buffer):
            inside = np.ones(MIDDLE)
            with ft.use(pool):
                assert ft.get_allocator(np.ones(MIDDLE)) == pool
                with ft.scratch(buffer):
                    assert ft.get_allocator(np.ones(MIDDLE)) != pool
                assert ft.get_allocator(np.ones(MIDDLE)) == pool
            assert buffer.used >= inside.nbytes
            assert ft.get_allocator(np.ones(MIDDLE)) != pool
        assert ft.get_allocator() == pool
    assert ft.get_allocator() == NUMPY


def test_under_an_installed_pool() -> None:
    ft.install()
    installed, kept = ft.get_allocator(), Kept()
    with ft.scratch() as s:
        kept.make()
        kept.make(LARGE)
        assert s.buffer.used >= MIDDLE
        churn()
    churn()
    assert ft.get_allocator() == installed
    assert kept.intact()


def test_arrays_grow_and_shrink_where_they_are_and_elsewhere() -> None:
    kept, grown = Kept(), []
    with ft.scratch(ft.ScratchBuffer()) as s:
        for make in (np.empty, s.empty):
            array: Any = make(MIDDLE, np.uint8)
            grown.append(array)
            array[:1000] = 7
            kept.make(MIDDLE, make)
            for size in (2 * MIDDLE, LARGE, 3 * CHUNK, 1000, MIDDLE):
                array.resize(size, refcheck=False)
                assert (array[:1000] == 7).all()
                array[1000:] = 9
                assert kept.intact()
    for array in grown:  # after the scope
        array.resize(2 * LARGE, refcheck=False)
        assert (array[:1000] == 7).all()
        assert not array[MIDDLE:].any()
    churn()
    assert kept.intact()


def test_what_a_scope_says_of_itself() -> None:
    with ft.scratch(ft.ScratchBuffer("2 MiB", limit="1 GiB")) as s:
        assert isinstance(s, ft.buffers.Scope)
        assert "open" in repr(s)
        assert "ScratchBuffer(2097152" in repr(s)
    assert "open" not in repr(s)
    assert repr(ft.scratch()) == "scratch()"
    for buffer in (ft.ScratchBuffer("256 KiB"), ft.FixedBuffer("64 KiB")):
        assert f"{type(buffer).__name__}(" in repr(buffer)
        assert repr(buffer) in repr(ft.scratch(buffer))
