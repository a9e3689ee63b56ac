"""Scratch memory of a library: a table of C functions at an address."""

import ctypes
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.programs import ROOT
from tests.scratch.arrays import MIDDLE, Kept, churn

pytestmark = pytest.mark.quick

BUILT = [ROOT / "target" / profile / "examples" / "libown_scratch.so" for profile in ("fast", "release", "debug")]

Allocate = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t)
Mark = ctypes.CFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)
Rewind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64)


class Table(ctypes.Structure):
    _fields_ = (("context", ctypes.c_void_p), ("allocate", Allocate), ("mark", Mark), ("rewind", Rewind))


def library() -> Any:
    found: list[Path] = [path for path in BUILT if path.exists()]
    if not found:
        pytest.skip("the example own_scratch is not built: cargo build --package firsttouch --example own_scratch")
    loaded = ctypes.CDLL(str(found[0]))
    loaded.firsttouch_scratch_table.restype = ctypes.c_void_p
    return loaded


def test_a_rust_librarys_own() -> None:
    buffer, kept = ft.buffers.scratch_from_table(library().firsttouch_scratch_table()), Kept()
    for _ in range(50):
        with ft.scratch(buffer) as s:
            kept.make(2_000)
            work = s.ones(5_000, np.uint8) + np.ones(5_000, np.uint8)
            assert (work == 2).all()
            del work
        if len(kept) > 3:
            kept.clear()
        assert kept.intact()
    kept.clear()
    assert buffer.used == 0


class Memory:
    """A table around memory of ours; ctypes' functions take the GIL, which one thread at a time has anyway."""

    def __init__(self, size: int = 4 << 20) -> None:
        self.memory = np.zeros(size, np.uint8)
        self.start = int(self.memory.ctypes.data)
        self.top = 0
        self.table = Table(None, Allocate(self.allocate), Mark(lambda _: self.top), Rewind(self.rewind))
        self.address = ctypes.addressof(self.table)

    def allocate(self, _: Any, size: int, align: int) -> int | None:
        address = -(-(self.start + self.top) // align) * align
        if address + size > self.start + self.memory.size:
            return None
        self.top = address + size - self.start
        return address

    def rewind(self, _: Any, mark: int) -> None:
        self.memory[mark : self.top] = 0xDD
        self.top = mark


def test_a_table_of_ones_own() -> None:
    memory, kept = Memory(), Kept()
    buffer = ft.buffers.scratch_from_table(memory.address)
    assert hex(memory.address) in repr(buffer)
    for _ in range(20):
        with ft.scratch(buffer) as s:
            assert np.shares_memory(kept.make(MIDDLE, s.empty), memory.memory)
        assert kept.intact()
    assert memory.top >= 20 * MIDDLE
    kept.clear()
    with ft.scratch(buffer):
        pass
    assert memory.top == 0
    churn()


def test_two_buffers_on_one_table() -> None:
    memory, kept = Memory(), Kept()
    outer, inner = ft.buffers.scratch_from_table(memory.address), ft.buffers.scratch_from_table(memory.address)
    with ft.scratch(outer), ft.scratch(inner):
        kept.make()
    with ft.scratch(outer):
        np.full(MIDDLE, 3, np.uint8)
    assert kept.intact()


def test_one_that_is_full() -> None:
    memory = Memory(100_000)
    with ft.scratch(ft.buffers.scratch_from_table(memory.address)) as s:
        held = s.ones(MIDDLE, np.uint8)
        with pytest.raises(MemoryError):
            s.ones(80_000, np.uint8)
        assert held.all()


@pytest.mark.parametrize(
    ("address", "error", "words"),
    [
        (0, ValueError, "0"),
        (-8, ValueError, "address"),
        (1 << 64, ValueError, "address"),
        ("0x40", TypeError, "address"),
        (None, TypeError, "address"),
        (ctypes.addressof(Table()) | 1, ValueError, "address"),
    ],
    ids=["null", "negative", "huge", "text", "none", "odd"],
)
def test_addresses_where_no_table_can_stand(address: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        ft.buffers.scratch_from_table(address)


def test_a_table_with_a_function_missing() -> None:
    empty = Table()
    with pytest.raises(ValueError, match=r"allocate|function|null"):
        ft.buffers.scratch_from_table(ctypes.addressof(empty))
