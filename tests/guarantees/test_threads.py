"""Threads: see the page."""

import contextlib
import threading
import time
from collections.abc import Callable

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import MIB

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
