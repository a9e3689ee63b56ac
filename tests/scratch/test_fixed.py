"""Buffers of a fixed size, on any memory; two on the same memory would hand it out twice."""

import ctypes
import gc
import mmap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.programs import run
from tests.scratch.arrays import MIDDLE

pytestmark = pytest.mark.quick


def test_numpys_own_arrays_that_do_not_fit() -> None:
    with ft.scratch(ft.FixedBuffer(200_000)) as s:
        held = np.ones(MIDDLE, np.uint8)
        with pytest.raises(MemoryError):
            np.ones(180_000, np.uint8)
        failure = ft.last_failure()
        assert failure is not None
        assert failure.asked == 180_000
        assert "cannot allocate 175.78 KiB: the fixed buffer has" in str(failure)
        assert np.ones(100_000, np.uint8).all()
        assert held.all()
        assert s.is_open


@pytest.mark.linux("fork")
def test_shared_memory_is_closed_in_a_forked_child() -> None:
    printed = run(
        """
        import mmap, os
        buffer = ft.FixedBuffer(mmap.mmap(-1, 1 << 20))
        kept = buffer.full(50_000, 7, np.uint8)
        child = os.fork()
        if not child:
            text = probe.message(MemoryError, lambda: buffer.empty(5_000))
            del kept  # the parent's: nothing happens to it
            os._exit(7 if "fork" in text else 8)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        more = buffer.full(50_000, 3, np.uint8)
        assert (kept == 7).all() and (more == 3).all()
        """,
    )
    assert printed == "7\n"


def test_fields_may_have_any_name() -> None:
    ft.FixedBuffer(np.zeros(1000, [("Oxygen", "f8"), ("O", "i4")]))
    for kind in ("O", [("Oxygen", "f8"), ("rest", "O")], [("a", [("O", "f8"), ("b", "O")])]):
        with pytest.raises(ValueError, match="of objects, whose references would be lost"):
            ft.FixedBuffer(np.zeros(1000, kind))


SIZE = 400_000


#: Two views of the same memory, of each kind of lender.
PAIRS: dict[str, Callable[[], tuple[Any, Any]]] = {
    "an array": lambda: ((a := np.zeros(SIZE, np.uint8))[:200_000], a[199_999:]),
    "its transpose": lambda: ((a := np.zeros((100, 500))).T, memoryview(a)),
    "ctypes": lambda: (memoryview(a := bytearray(SIZE))[1000:], (ctypes.c_char * 100_000).from_buffer(a)),
    "a mapping": lambda: (m := mmap.mmap(-1, SIZE), np.frombuffer(m, np.uint8)[4096:]),
    "a shared array": lambda: (a := ft.shared(SIZE // 8), a[1000:20_000]),
}


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_a_second_buffer_on_memory_of_a_first_is_refused(pair: Any) -> None:
    one, other = pair()
    for first, second in ((one, other), (other, one)):
        buffer = ft.FixedBuffer(first)
        kept = buffer.full(50_000, 7, np.uint8)
        with pytest.raises(ValueError, match="overlap") as error:
            ft.FixedBuffer(second)
        del buffer
        gc.collect()
        with pytest.raises(ValueError, match="overlap"):  # its arrays live on
            ft.FixedBuffer(second)
        assert (kept == 7).all()
        del kept, error
        gc.collect()
        assert ft.FixedBuffer(second).full(40_000, 3, np.uint8).all()
        gc.collect()


def test_a_buffer_within_a_block_of_another() -> None:
    outer = ft.FixedBuffer(SIZE)
    for block in (outer.zeros(200_000, np.uint8), memoryview(outer.empty(1_000, "u1"))):
        with pytest.raises(ValueError, match="overlap"):
            ft.FixedBuffer(block)


class Borrowing:
    """Returns blocks that NumPy made."""

    def __init__(self) -> None:
        self.blocks: dict[int, Any] = {}

    def allocate(self, nbytes: int, alignment: int, zeroed: bool) -> int:
        block = np.zeros(nbytes, np.uint8)
        self.blocks[block.ctypes.data] = block
        return block.ctypes.data

    def deallocate(self, address: int, nbytes: int) -> None:
        del self.blocks[address]


def test_a_buffer_on_a_block_of_an_allocator_of_ones_own() -> None:
    borrowing = Borrowing()
    with ft.scratch(ft.ScratchBuffer("1 MiB")):
        storage = ft.empty(50_000, np.uint8, allocator=borrowing)
    buffer = ft.FixedBuffer(storage)
    for scope in (buffer, ft.ScratchBuffer()):
        array = buffer.zeros(2_000, np.uint8)
        with ft.scratch(scope):
            del array
        assert (buffer.used, list(borrowing.blocks)) == (0, [storage.ctypes.data])


def test_an_allocator_that_returns_a_block_of_a_fixed_buffer() -> None:
    """Freed, it was taken for the buffer's, and given out again while the allocator had it."""
    borrowing, buffer = Borrowing(), ft.FixedBuffer(SIZE)
    with ft.scratch(buffer), pytest.raises(ValueError, match="a block of a FixedBuffer"):
        ft.empty(2_000, np.uint8, allocator=borrowing)
    assert (buffer.used, borrowing.blocks) == (0, {})
    with ft.scratch(ft.ScratchBuffer()):
        array = ft.empty(2_000, np.uint8, allocator=borrowing)
    assert list(borrowing.blocks) == [array.ctypes.data]


def test_a_block_at_the_address_of_the_storage_beneath() -> None:
    """Also where it is freed in a scope of the buffer that the storage is of."""
    outer = ft.ScratchBuffer("1 MiB")
    storage = outer.zeros(50_000, np.uint8)
    inner = ft.FixedBuffer(storage)
    with ft.scratch(inner):
        array = np.full(2_000, 7, np.uint8)
    assert array.ctypes.data == storage.ctypes.data
    used = outer.used
    with ft.scratch(outer):
        del array
    assert (outer.used, inner.used) == (used, 0)
