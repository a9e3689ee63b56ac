"""Threads: see the page."""

import contextlib
import gc
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import MIB, Bytes, fill, intact, wait_until

pytestmark = pytest.mark.quick


def while_threads_work(
    allocator: ft.Allocator, look: Callable[[], None], seconds: float = 0.5, resizing: bool = True
) -> None:
    """Call `look` again and again while three threads allocate, resize, hand over and free."""
    stop, handed = threading.Event(), [np.empty(0, np.uint8)] * 16

    def work(seed: int) -> None:
        dice = np.random.default_rng(seed)
        while not stop.is_set():
            size = int(dice.choice([20_000, 100_000, 600_000, 2 * MIB, 5 * MIB]) + dice.integers(4096))
            with contextlib.suppress(MemoryError):
                array = allocator.empty(size, np.uint8)
                if resizing and dice.random() < 0.2:
                    array.resize(size + 50_000 if size < MIB else size // 2, refcheck=False)
                handed[int(dice.integers(16))] = array

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    end = time.monotonic() + seconds
    try:
        while time.monotonic() < end:
            look()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        handed.clear()


@pytest.mark.parametrize("expression", ["pool()", "pool(max_idle=0)", "pool(pages(), decay=0.1)", "pool(malloc())"])
def test_statistics_of_a_pool_agree_with_each_other_at_any_moment(expression: str) -> None:
    pool = ft.pool(ft.malloc()) if "malloc" in expression else eval(f"ft.{expression.replace('pages', 'ft.pages')}")
    last = ft.stats(pool)

    def look() -> None:
        nonlocal last
        now = ft.stats(pool)
        assert now.in_use <= now.active <= now.active + now.idle <= now.mapped, now
        assert now.active + now.idle <= now.peak_held, now
        assert now.in_use <= now.peak_in_use, now
        assert now.active <= now.peak_active, now
        assert now.blocks <= now.allocations, now
        assert now.recycled <= now.allocations, now
        assert (now.blocks == 0) == (now.in_use == 0) == (now.active == 0), now
        for name in ("allocations", "recycled", "allocated_bytes", "recycled_bytes", "purged_bytes", "peak_held"):
            assert getattr(now, name) >= getattr(last, name), (name, last, now)
        last = now

    while_threads_work(pool, look)
    assert (ft.stats(pool).blocks, ft.stats(pool).in_use, ft.stats(pool).active) == (0, 0, 0)
    assert last.allocations > 100


def test_statistics_of_tracked_agree_with_each_other_at_any_moment() -> None:
    tracked = ft.tracked()

    def look() -> None:
        now = ft.stats(tracked)
        assert now.in_use <= now.peak_in_use <= now.allocated_bytes, now
        assert now.blocks <= now.allocations, now

    while_threads_work(tracked, look)
    assert ft.stats(tracked).blocks == 0


def test_a_budget_is_never_exceeded_by_threads_together() -> None:
    inner = ft.tracked()
    limited = ft.limited(inner, 12 * MIB)
    refused = ft.last_failure()

    def look() -> None:
        assert ft.stats(inner).in_use <= 12 * MIB

    while_threads_work(limited, look, resizing=False)  # a block that moves is there twice for a moment
    assert ft.last_failure() != refused, "the budget was never reached"
    gc.collect()  # what threads left behind in cycles, or without a GIL in queues of counts
    assert limited.empty(12 * MIB, np.uint8).size == 12 * MIB


def test_install_serves_threads_that_already_run() -> None:
    begin, found = threading.Event(), []

    def body() -> None:
        begin.wait(10)
        found.append(ft.get_allocator(np.ones(MIB)))

    thread = threading.Thread(target=body)
    thread.start()
    pool = ft.pool()
    ft.install(pool)
    begin.set()
    thread.join()
    assert found == [pool]


def test_a_scratch_scope_serves_only_the_thread_that_opened_it() -> None:
    found: list[Bytes] = []
    with ft.scratch() as scope:
        mine = scope.empty(5000, np.uint8)
        fill(mine, 1)

        def body() -> None:
            with pytest.raises(RuntimeError, match="belongs to another thread"):
                scope.empty(5000, np.uint8)
            found.append(np.zeros(5000, np.uint8))

        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
        assert intact(mine, 1)
        assert not np.shares_memory(mine, found[0])
        assert ft.get_allocator(found[0]) != ft.get_allocator(mine)


def test_a_thread_that_ends_leaves_no_memory_behind() -> None:
    pool = ft.pool(decay=0.3)
    ft.install(pool)
    results: list[Bytes] = []

    def body() -> None:
        arrays = [np.ones(MIB, np.uint8) for _ in range(8)]
        results.append(arrays[3])

    for _ in range(60):
        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
    assert ft.stats(pool).blocks == 60
    assert all((array == 1).all() for array in results)
    results.clear()
    assert wait_until(lambda: ft.stats(pool).idle == 0, 5)
    assert ft.stats(pool).first_touched_bytes < 200 * MIB
