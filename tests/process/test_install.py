"""install(): every thread's arrays, from now on."""

import threading

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import MIB, fill, intact
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
    assert repr(ft.get_allocator(array)) == "pool(pages(huge='thp'), max_idle=None, decay=1.0)"
    del array
    assert ft.stats().blocks == before.blocks


def test_small_arrays_stay_with_numpy() -> None:
    ft.install()
    limit = ft.stats().small_limit
    before = ft.stats().allocations
    small, smallest_of_ours = np.empty(limit - 1, np.uint8), np.empty(limit, np.uint8)
    assert ft.get_allocator(small) == ft.numpy_default()
    assert ft.get_allocator(smallest_of_ours) == ft.get_allocator()
    assert ft.stats().allocations == before + 1


def test_again_is_the_same() -> None:
    ft.install()
    ft.install()
    assert ft.is_installed()
    ft.uninstall()
    assert not ft.is_installed()


def test_threads_that_already_run_are_served_too() -> None:
    go, done = threading.Event(), threading.Event()
    seen: list[ft.Allocator | None] = []

    def body() -> None:
        go.wait()
        seen.append(ft.get_allocator(np.ones(MIB)))
        done.set()

    thread = threading.Thread(target=body)
    thread.start()
    ft.install()
    go.set()
    done.wait()
    thread.join()
    assert seen == [ft.get_allocator()]


def test_another_allocator_while_arrays_of_the_first_live() -> None:
    first, second = ft.pool(), ft.pages()
    ft.install(first)
    one = np.empty(5 * MIB, np.uint8)
    fill(one, 1)
    ft.install(second)
    two = np.empty(5 * MIB, np.uint8)
    fill(two, 2)
    assert (ft.get_allocator(one), ft.get_allocator(two), ft.get_allocator()) == (first, second, second)
    assert intact(one, 1)
    assert intact(two, 2)
    del one
    assert ft.stats(first).blocks == 0
    assert ft.stats(first).idle >= 5 * MIB
    del two
    assert ft.stats(second).active == 0


def test_pages_serve_every_array_of_their_size() -> None:
    ft.install(ft.pages(huge="thp"))
    arrays = [np.full(size, 7, np.uint8) for size in (32 << 10, 100_000, 2 * MIB, 2 * MIB + 1, 9 * MIB)]
    assert {repr(ft.get_allocator(array)) for array in arrays} == {"pages(huge='thp')"}
    assert all((array == 7).all() for array in arrays)


def test_it_takes_numpy_at_its_word_about_who_frees() -> None:
    printed = run("""
        before = [np.full(size, 1, np.uint8) for size in (10, 40_000, 200_000, 50_000_000)]
        ft.install()
        during = [np.full(size, 2, np.uint8) for size in (10, 40_000, 200_000, 50_000_000)]
        del before
        ft.uninstall()
        assert all((array == 2).all() for array in during)
        after = [np.full(size, 3, np.uint8) for size in (10, 40_000, 200_000, 50_000_000)]
        assert ft.get_allocator(after[-1]) == ft.numpy_default()
        del during
        assert ft.stats().blocks == 0
        ft.install()
        assert ft.get_allocator(after[-1]) == ft.numpy_default()
        del after
        print("done")
    """)
    assert printed == "done\n"


def test_import_alone_changes_nothing() -> None:
    assert ask("""
        import json
        array = np.ones(1 << 20)
        print(json.dumps([ft.is_installed(), ft.stats().allocations, probe.threads().count("firsttouch")]))
    """) == [False, 0, 0]


def test_an_expression_names_what_was_installed_by_it_ever_after() -> None:
    """It is never dropped: a new one each time would be memory that the process never gets back."""
    printed = run("""
        for _ in range(3):
            ft.install("pool(decay=7.0)")
            served = ft.get_allocator(np.empty(1 << 20))
            ft.uninstall()
            for number in range(100):  # more expressions than are remembered
                with ft.use(f"pool(decay={number + 10}.5)"):
                    pass
            print(ft.get_allocator(ft.empty(1 << 20, allocator="pool(decay=7.0)")) == served)
    """)
    assert printed == "True\nTrue\nTrue\n"
