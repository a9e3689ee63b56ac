"""Which allocator serves: install(), uninstall(), get_allocator(), and what the default is."""

import mmap
import threading
from pathlib import Path

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import MIB
from tests.programs import ask, run

pytestmark = pytest.mark.quick


def test_the_processes_own_pool_serves_large_arrays() -> None:
    before = ft.stats()
    assert not ft.is_installed()
    ft.install()
    assert ft.is_installed()
    array = np.empty(MIB, np.uint8)
    after = ft.stats()
    assert after.allocations == before.allocations + 1
    assert after.blocks == before.blocks + 1
    assert after.allocated_bytes == before.allocated_bytes + MIB
    assert ft.get_allocator(array) == ft.get_allocator()
    assert repr(ft.get_allocator(array)) == repr(ft.pool())
    del array
    assert ft.stats().blocks == before.blocks


def test_threads_that_already_run_are_served() -> None:
    begin, found = threading.Event(), list[ft.Allocator | None]()
    thread = threading.Thread(target=lambda: found.append(ft.get_allocator(np.ones(MIB)) if begin.wait() else None))
    thread.start()
    ft.install(pool := ft.pool())
    begin.set()
    thread.join()
    assert found == [pool]


@pytest.mark.linux("/proc")
def test_import_alone_changes_nothing() -> None:
    assert ask("""
        import json
        array = np.ones(1 << 20)
        print(json.dumps([ft.is_installed(), ft.stats().allocations, probe.threads().count("firsttouch")]))
    """) == [False, 0, 0]


@pytest.fixture
def pool() -> ft.Allocator:
    made = ft.pool()
    ft.install(made)
    return made


def test_views_are_their_owners(pool: ft.Allocator) -> None:
    whole = np.empty((1024, 1024))
    views = [whole[3], whole[::2, 5:], whole.T, whole.reshape(-1), whole.view(np.uint8), whole[5:6][0][7:]]
    assert {ft.get_allocator(view) for view in views} == {pool}


def test_memory_that_numpy_did_not_allocate(pool: ft.Allocator, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(bytes(MIB))
    assert ft.get_allocator(np.memmap(tmp_path / "data", np.uint8, "r")) is None
    assert ft.get_allocator(np.frombuffer(bytearray(MIB), np.uint8)) is None
    assert ft.get_allocator(np.frombuffer(mmap.mmap(-1, MIB), np.uint8)[5:]) is None
    assert ft.get_allocator(np.asarray(memoryview(bytes(MIB)))) is None


def test_small_arrays_say_numpy(pool: ft.Allocator) -> None:
    limit = ft.stats().small_limit
    assert ft.get_allocator(np.empty(limit - 1, np.uint8)) == ft.numpy_default()
    assert ft.get_allocator(np.empty(limit, np.uint8)) == pool
    assert ft.get_allocator(pool.empty(3)) == ft.get_allocator(pool.full(3, 1.0)) == ft.numpy_default()
    assert ft.get_allocator(ft.filled(pool).empty(3)) != ft.numpy_default()  # which fills what it is asked for
    with ft.use(pool):
        assert ft.get_allocator(np.empty(3)) == ft.numpy_default()
        assert ft.get_allocator(np.empty(())) == ft.numpy_default()
    with ft.use(ft.aligned(64)):
        assert repr(ft.get_allocator(np.empty(3))) == "aligned(64)"


def test_it_keeps_the_allocator_alive() -> None:
    with ft.use(ft.pool(max_idle="1 MiB")):
        array = np.empty(MIB)
    found = ft.get_allocator(array)
    assert repr(found) == "pool(max_idle='1 MiB')"
    del array
    assert found is not None
    assert ft.stats(found).idle >= 0
    assert len({found, ft.pool()}) == 2


@pytest.mark.parametrize("wrong", [3, "x", [1.0], None.__class__, np.float64(3)])
def test_only_arrays_have_one(wrong: object) -> None:
    with pytest.raises(TypeError, match=r"get_allocator\(\) takes a NumPy array, not "):
        ft.get_allocator(wrong)  # type: ignore[arg-type]


def test_the_process_is_the_default() -> None:
    with ft.use(ft.pool()) as pool:
        array = ft.empty(1_000_000, allocator=None)
        assert ft.get_allocator(array) == ft.get_allocator() == pool
        assert ft.stats(None).in_use == ft.stats().in_use != array.nbytes == ft.stats(pool).in_use
        with ft.use(None) as own:
            assert own != pool
            assert ft.get_allocator(np.empty(100_000)) == own
        ft.install(None)
    assert ft.get_allocator(np.empty(100_000)) == own


@pytest.mark.linux("/proc")
def test_installing_again_and_again_takes_no_memory() -> None:
    run(
        """
        import firsttouch as ft
        from tests import probe
        allocators = ft.pool(), ft.limited(ft.pool(), "1 GiB")
        def install_in_turns(times):
            for _ in range(times):
                for allocator in allocators:
                    ft.install(allocator)
                ft.uninstall()
        install_in_turns(1000)
        before = probe.rss()
        install_in_turns(100_000)
        assert probe.rss() - before < 2 << 20, probe.rss() - before
        """
    )
