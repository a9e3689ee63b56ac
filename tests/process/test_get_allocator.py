"""get_allocator(): the allocator of an array's memory, whatever the array is."""

import mmap
from pathlib import Path

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import MIB

pytestmark = pytest.mark.quick


@pytest.fixture
def pool() -> ft.Allocator:
    made = ft.pool()
    ft.install(made)
    return made


def test_new_arrays_here() -> None:
    assert ft.get_allocator() == ft.numpy_default()
    ft.install()
    ours = ft.get_allocator()
    assert repr(ours) == "pool(pages(huge='thp'), max_idle=None, decay=1.0)"
    with ft.use(ft.calloc()):
        assert repr(ft.get_allocator()) == "calloc()"
    with ft.use(ft.numpy_default()):
        assert ft.get_allocator() == ft.numpy_default()
    assert ft.get_allocator() == ours
    ft.uninstall()
    assert ft.get_allocator() == ft.numpy_default()


def test_views_are_their_owners(pool: ft.Allocator) -> None:
    whole = np.empty((1024, 1024))
    views = [whole[3], whole[::2, 5:], whole.T, whole.reshape(-1), whole.view(np.uint8), whole[5:6][0][7:]]
    assert {ft.get_allocator(view) for view in views} == {pool}


def test_subclasses_too(pool: ft.Allocator) -> None:
    class Mine(np.ndarray):
        pass

    assert ft.get_allocator(np.empty(MIB).view(Mine)) == pool
    assert ft.get_allocator(np.ma.masked_array(np.empty(MIB))) == pool
    assert ft.get_allocator(np.rec.array(np.empty(MIB, "i4,f8"))) == pool


def test_memory_that_numpy_did_not_allocate(pool: ft.Allocator, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(MIB))
    assert ft.get_allocator(np.memmap(tmp_path / "data", np.uint8, "r")) is None
    assert ft.get_allocator(np.frombuffer(bytearray(MIB), np.uint8)) is None
    assert ft.get_allocator(np.frombuffer(mmap.mmap(-1, MIB), np.uint8)[5:]) is None
    assert ft.get_allocator(np.asarray(memoryview(bytes(MIB)))) is None


def test_a_memoryview_of_an_array_leads_back_to_it(pool: ft.Allocator) -> None:
    array = np.empty(MIB, np.uint8)
    assert ft.get_allocator(np.asarray(memoryview(array))) in (None, pool)  # NumPy's own business; never wrong
    assert ft.get_allocator(np.frombuffer(array, np.uint8)) in (None, pool)


def test_small_arrays_say_numpy(pool: ft.Allocator) -> None:
    assert ft.get_allocator(np.empty(3)) == ft.numpy_default()
    with ft.use(pool):
        assert ft.get_allocator(np.empty(3)) == ft.numpy_default()
        assert ft.get_allocator(np.empty(())) == ft.numpy_default()
    with ft.use(ft.aligned(64)):
        assert repr(ft.get_allocator(np.empty(3))) == "aligned(64)"


def test_it_keeps_the_allocator_alive() -> None:
    with ft.use(ft.pool(max_idle="1 MiB")):
        array = np.empty(MIB)
    found = ft.get_allocator(array)
    assert repr(found) == "pool(pages(huge='thp'), max_idle='1 MiB', decay=1.0)"
    del array
    assert found is not None
    assert ft.stats(found).idle >= 0
    assert len({found, ft.pool()}) == 2


@pytest.mark.parametrize("wrong", [3, "x", [1.0], None.__class__, np.float64(3)])
def test_only_arrays_have_one(wrong: object) -> None:
    with pytest.raises(TypeError, match=r"get_allocator\(\) takes a NumPy array, not "):
        ft.get_allocator(wrong)  # type: ignore[arg-type]
