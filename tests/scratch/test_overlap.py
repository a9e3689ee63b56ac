"""Two fixed buffers on the same memory would hand it out twice, so the second is rejected."""

import ctypes
import gc
import mmap
import os
from collections.abc import Callable
from multiprocessing import shared_memory
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firsttouch as ft

pytestmark = pytest.mark.quick

SIZE = 400_000


def array_and_view(_: Path) -> tuple[Any, Any]:
    a = np.zeros(SIZE, np.uint8)
    return a, a[100_000:200_000]


def overlapping_views(_: Path) -> tuple[Any, Any]:
    a = np.zeros(SIZE, np.uint8)
    return a[:200_000], a[199_999:]


def same(_: Path) -> tuple[Any, Any]:
    a = np.zeros((100, 500))
    return a, a


def transposed(_: Path) -> tuple[Any, Any]:
    a = np.zeros((100, 500))
    return a.T, memoryview(a)


def bytes_and_ctypes(_: Path) -> tuple[Any, Any]:
    a = bytearray(SIZE)
    return memoryview(a)[1000:], (ctypes.c_char * 100_000).from_buffer(a)


def frombuffer(_: Path) -> tuple[Any, Any]:
    a = bytearray(SIZE)
    return a, np.frombuffer(a, np.uint8)


def file_mapped_twice(tmp_path: Path) -> tuple[Any, Any]:
    path = tmp_path / "scratch"
    path.write_bytes(bytes(SIZE))
    return np.memmap(path, np.uint8, "r+"), np.memmap(path, np.uint8, "r+", offset=100_000)


def shared_memory_opened_twice(_: Path) -> tuple[Any, Any]:
    block = shared_memory.SharedMemory(create=True, size=SIZE)
    other = shared_memory.SharedMemory(block.name)
    block.unlink()
    for each in (block, other):  # nothing closes them while they are used
        each.close = lambda: None  # type: ignore[method-assign]
    return block.buf, other.buf


def anonymous(_: Path) -> tuple[Any, Any]:
    m = mmap.mmap(-1, SIZE)
    return m, np.frombuffer(m, np.uint8)[4096:]


def shared_array(_: Path) -> tuple[Any, Any]:
    a = ft.shared(SIZE // 8)
    return a, a[1000:20_000]


PAIRS: list[Callable[[Path], tuple[Any, Any]]] = [
    array_and_view, overlapping_views, same, transposed, bytes_and_ctypes, frombuffer, file_mapped_twice,
    shared_memory_opened_twice, anonymous, shared_array,
]  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS)
def test_a_second_buffer_on_memory_of_a_first_is_refused(pair: Any, tmp_path: Path) -> None:
    one, other = pair(tmp_path)
    for first, second in ((one, other), (other, one)):
        buffer = ft.FixedBuffer(first)
        kept = buffer.full(50_000, 7, np.uint8)
        with pytest.raises(ValueError, match="overlap") as error:
            ft.FixedBuffer(second)
        said = str(error.value)
        assert type(first).__name__ in said, said
        assert type(second).__name__ in said, said
        del buffer
        gc.collect()
        with pytest.raises(ValueError, match="overlap"):  # its arrays live on
            ft.FixedBuffer(second)
        assert (kept == 7).all()
        del kept, error
        gc.collect()
        assert ft.FixedBuffer(second).full(40_000, 3, np.uint8).all()
        gc.collect()


def test_neighbours_do_not_overlap() -> None:
    a = np.zeros(SIZE, np.uint8)
    one, other = ft.FixedBuffer(a[: SIZE // 2]), ft.FixedBuffer(a[SIZE // 2 :])
    x, y = one.full(100_000, 1, np.uint8), other.full(100_000, 2, np.uint8)
    assert (x == 1).all()
    assert (y == 2).all()


def test_parts_of_one_file_do_not_overlap(tmp_path: Path) -> None:
    path = tmp_path / "scratch"
    path.write_bytes(bytes(SIZE))
    one = ft.FixedBuffer(np.memmap(path, np.uint8, "r+", shape=(200_000,)))
    other = ft.FixedBuffer(np.memmap(path, np.uint8, "r+", offset=200_000))
    private = ft.FixedBuffer(np.memmap(path, np.uint8, "c"))  # copied where it is written
    arrays = [each.full(100_000, i, np.uint8) for i, each in enumerate((one, other, private))]
    assert [int(a.min()) for a in arrays] == [int(a.max()) for a in arrays] == [0, 1, 2]


def test_a_buffer_within_a_block_of_another() -> None:
    """What one buffer handed out is its holder's, who may make another buffer of it."""
    outer = ft.FixedBuffer(np.zeros(SIZE, np.uint8))
    block = outer.zeros(200_000, np.uint8)
    inner = ft.FixedBuffer(block)
    raw = ft.FixedBuffer(ft.FixedBuffer(outer.alloc(100_000)).alloc(50_000))
    arrays = [inner.full(100_000, 1, np.uint8), outer.full(50_000, 2, np.uint8), raw.full(40_000, 3, np.uint8)]
    assert [int(a.min()) for a in arrays] == [int(a.max()) for a in arrays] == [1, 2, 3]
    with pytest.raises(ValueError, match="overlap"):
        ft.FixedBuffer(block[1000:])


def test_a_buffer_around_another_is_refused() -> None:
    block = ft.FixedBuffer(np.zeros(SIZE, np.uint8)).zeros(200_000, np.uint8)
    buffer = ft.FixedBuffer(block)
    del block
    assert buffer.full(100_000, 1, np.uint8).all()
    a = np.zeros(SIZE, np.uint8)
    part = ft.FixedBuffer(a[1000:100_000])
    with pytest.raises(ValueError, match="overlap"):
        ft.FixedBuffer(a)
    assert part.capacity > 0


def test_a_refused_second_buffer_leaves_the_lender_free() -> None:
    a = bytearray(SIZE)
    buffer = ft.FixedBuffer(memoryview(a)[:1000])
    with pytest.raises(ValueError, match="overlap"):
        ft.FixedBuffer(a)
    del buffer
    gc.collect()
    a.extend(b"more")


def test_the_same_file_under_a_name_that_is_no_text(tmp_path: Path) -> None:
    """The list of mappings holds any bytes; those of one name must not hide all that follow."""
    name = os.fsencode(tmp_path) + b"/\xff"
    with open(name, "wb") as file:
        file.truncate(1 << 16)
    with open(name, "r+b") as file:
        one, two = mmap.mmap(file.fileno(), 1 << 16), mmap.mmap(file.fileno(), 1 << 16)
    kept = ft.FixedBuffer(one)
    with pytest.raises(ValueError, match="another"):
        ft.FixedBuffer(two)
    del kept
