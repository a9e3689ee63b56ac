"""Buffers of a fixed size, on any memory; two on the same memory would hand it out twice."""

import ctypes
import gc
import mmap
import re
import weakref
from collections.abc import Callable
from multiprocessing import shared_memory
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.programs import run
from tests.scratch.arrays import MIDDLE, Kept

pytestmark = pytest.mark.quick


def test_what_does_not_fit_says_what_is_used_and_asked() -> None:
    buffer = ft.FixedBuffer(200_000)
    with ft.scratch(buffer) as s:
        held = s.ones(MIDDLE, np.uint8)
        for ask in (lambda: s.empty(180_000, np.uint8), lambda: s.alloc(180_000), lambda: buffer.zeros(180_000, "u1")):
            with pytest.raises(MemoryError) as error:
                ask()
            said = "cannot allocate 175.78 KiB: the fixed buffer has 195.31 KiB, of which 48.8. KiB are in use by 1"
            assert re.search(f"{said} live block; ", str(error.value)), str(error.value)
        assert held.all()
        assert s.ones(100_000, np.uint8).all()


def test_numpys_own_arrays_that_do_not_fit() -> None:
    with ft.scratch(ft.FixedBuffer(200_000)) as s:
        held = np.ones(MIDDLE, np.uint8)
        with pytest.raises(MemoryError):
            np.ones(180_000, np.uint8)
        failure = ft.last_failure()
        assert failure is not None
        assert failure.asked == 180_000
        assert np.ones(100_000, np.uint8).all()
        assert held.all()
        assert s.is_open
    with pytest.raises(MemoryError) as error, ft.scratch(ft.FixedBuffer(200_000)):
        np.ones(300_000)
    assert any("cannot allocate 2.29 MiB" in note for note in error.value.__notes__)


def test_an_error_is_told_its_own_reason_once() -> None:
    full, elsewhere = ft.FixedBuffer(200_000), np.ones(3)
    with pytest.raises(MemoryError) as error, ft.scratch(full), ft.scratch(full), ft.scratch(full):
        np.ones(300_000)
    assert len(error.value.__notes__) == 1
    with pytest.raises(MemoryError) as other:
        np.broadcast_to(elsewhere, (2**50, 3)).copy()

    def fail_again() -> None:
        with ft.scratch(full):
            with pytest.raises(MemoryError):
                np.ones(300_000)
            raise other.value

    with pytest.raises(MemoryError) as again:
        fail_again()
    assert again.value is other.value
    assert not getattr(again.value, "__notes__", ())


def test_it_works_around_what_lives() -> None:
    buffer, kept = ft.FixedBuffer(600_000), Kept()
    for turn in range(300):
        with ft.scratch(buffer):
            temporary = np.ones(80_000, np.uint8)
            if turn % 30 == 0:
                kept.make(9_000)
            temporary = np.ones(90_000, np.uint8) + temporary[0]
            assert (temporary == 2).all()
        assert kept.intact()
    assert buffer.capacity == 600_000
    assert len(kept) == 10
    del temporary
    kept.clear()
    assert buffer.used == 0
    with ft.scratch(buffer) as s:
        s.ones(590_000, np.uint8)


@pytest.mark.parametrize("dtype", [np.uint8, np.float64, "i4,f8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_an_array_as_storage(dtype: Any, order: Any) -> None:
    storage = np.zeros((300, 400), dtype, order)
    buffer, kept = ft.FixedBuffer(storage), Kept()
    assert buffer.capacity <= storage.nbytes
    with ft.scratch(buffer):
        array = kept.make()
        assert np.shares_memory(array, storage)
        churn_small()
    assert kept.intact()
    gone = weakref.ref(storage)
    del storage, buffer
    gc.collect()
    assert gone() is not None
    assert kept.intact()
    del array
    kept.clear()
    gc.collect()
    assert gone() is None


def churn_small() -> None:
    for size in (2_000, 20_000):
        np.full(size, 3, np.uint8)


def test_a_view_of_an_array_and_odd_places() -> None:
    base = np.full(200_100, 7, np.uint8)
    kept = Kept()
    with ft.scratch(ft.FixedBuffer(base[37:200_037])) as s:
        array = kept.make(100_000, s.empty)
        assert array.ctypes.data % 64 == 0
        with pytest.raises(MemoryError):
            s.empty(200_000, np.uint8)
    assert (base[:37] == 7).all()
    assert (base[200_037:] == 7).all()


def test_a_bytearray_and_a_memoryview_and_ctypes() -> None:
    for storage in (bytearray(200_000), memoryview(bytearray(200_000)), (ctypes.c_char * 200_000)()):
        kept = Kept()
        with ft.scratch(ft.FixedBuffer(storage)):
            kept.make()
        assert kept.intact()
    grows = bytearray(200_000)
    buffer = ft.FixedBuffer(grows)
    with pytest.raises(BufferError):
        grows.extend(b"more")
    del buffer
    gc.collect()
    grows.extend(b"more")


def test_a_file_in_memory(tmp_path: Path) -> None:
    path = tmp_path / "scratch"
    path.write_bytes(bytes(400_000))
    with path.open("r+b") as file:
        mapping = mmap.mmap(file.fileno(), 0)
    buffer = ft.FixedBuffer(mapping)
    with ft.scratch(buffer) as s:
        array = s.full(300_000, 5, np.uint8)
        with pytest.raises(BufferError):
            mapping.close()
    mapping.flush()
    assert path.read_bytes().count(5) >= 300_000
    del array, buffer, s
    gc.collect()
    mapping.close()
    disk = np.memmap(path, np.uint8, "r+")
    with ft.scratch(ft.FixedBuffer(disk)):
        assert np.shares_memory(np.ones(MIDDLE, np.uint8), disk)


def test_shared_memory_is_closed_in_a_forked_child() -> None:
    printed = run(
        """
        import mmap, os
        shared, own = mmap.mmap(-1, 1 << 20), ft.FixedBuffer("1 MiB")
        buffer = ft.FixedBuffer(shared)
        kept = buffer.full(50_000, 7, np.uint8)
        with ft.scratch(buffer) as s:
            inside = s.full(50_000, 9, np.uint8)
            child = os.fork()
            if not child:
                used = buffer.used
                text = probe.message(RuntimeError, lambda: s.empty(5_000))
                text += probe.message(MemoryError, lambda: buffer.empty(5_000))
                with ft.scratch(own):
                    assert (np.ones(50_000) * 2).all()
                del inside, kept      # the parent's: nothing happens to them
                os._exit(7 if "process" in text and "fork" in text else 8)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            more = s.full(50_000, 3, np.uint8)
            assert (inside == 9).all() and (kept == 7).all() and (more == 3).all()
        print(buffer.used >= 150_000)
        """,
    )
    assert printed == "True\n"


def test_between_processes() -> None:
    block = shared_memory.SharedMemory(create=True, size=200_000)
    try:
        assert block.buf is not None
        buffer = ft.FixedBuffer(block.buf)
        with ft.scratch(buffer) as s:
            array = s.full(MIDDLE, 5, np.uint8)
            other = shared_memory.SharedMemory(block.name)
            assert bytes(other.buf or b"").count(5) >= MIDDLE
            other.close()
        del array, s, buffer
        gc.collect()
    finally:
        block.close()
        block.unlink()


def test_a_number_of_numpys_is_a_size() -> None:
    assert ft.FixedBuffer(np.prod((1024, 8))).capacity == ft.FixedBuffer(8192).capacity


def test_fields_may_have_any_name() -> None:
    ft.FixedBuffer(np.zeros(1000, [("Oxygen", "f8"), ("O", "i4")]))
    for kind in ("O", [("Oxygen", "f8"), ("rest", "O")], [("a", [("O", "f8"), ("b", "O")])]):
        with pytest.raises(TypeError, match="of objects, whose references would be lost"):
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


def test_neighbours_do_not_overlap() -> None:
    a = np.zeros(SIZE, np.uint8)
    one, other = ft.FixedBuffer(a[: SIZE // 2]), ft.FixedBuffer(a[SIZE // 2 :])
    x, y = one.full(100_000, 1, np.uint8), other.full(100_000, 2, np.uint8)
    assert (x == 1).all()
    assert (y == 2).all()


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
