"""Memory freed inside a scope is reused there: loops hold a few blocks, whatever the number of iterations."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.scratch.arrays import CHUNK, LARGE, MIDDLE, Kept, churn

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("nbytes", [2_000, 20_000, 130_000, 200_000, 1_000_000])
def test_ten_thousand_turns_in_one_scope(nbytes: int) -> None:
    """At most four times the live peak: `x`, and what `x * 0.5` and `+ 1` make beside it."""
    buffer = ft.ScratchBuffer()
    with ft.scratch(buffer):
        x = np.ones(nbytes // 8)
        for _ in range(10_000 if nbytes < 500_000 else 1_000):
            x = x * 0.5 + 1
        assert abs(x - 2).max() < 1e-9
        live = 3 * x.nbytes
        assert buffer.peak <= live + 3 * 4096
        assert buffer.capacity <= max(4 * live, CHUNK)


@pytest.mark.parametrize(("size", "count"), [(MIDDLE, 5), (100_000, 30), (LARGE, 3), (3_000, 40)])
def test_a_loop_that_binds_the_same_names_again(size: int, count: int) -> None:
    """At most twice one turn's memory, for ever: the last turn's arrays die one by one as the next one's are made."""
    buffer = ft.ScratchBuffer()
    held: list[Any] = [None] * count
    most = 0
    for turn in range(300):
        with ft.scratch(buffer) as s:
            for at in range(count):
                held[at] = s.full(size, turn % 200, np.uint8) if at % 2 else np.full(size, turn % 200, np.uint8)
        assert all((array == turn % 200).all() for array in held)
        most = max(most, buffer.capacity)
    one_turn = count * (size + 64)
    assert buffer.peak <= 2 * one_turn
    assert most <= max(2 * one_turn, CHUNK) + CHUNK


def test_one_small_array_kept_in_every_turn() -> None:
    """Held are at most twice the living bytes, and two chunks."""
    buffer, kept = ft.ScratchBuffer(), []
    for turn in range(3_000):
        with ft.scratch(buffer) as s:
            work = s.ones(MIDDLE) + np.ones(MIDDLE)
            kept.append(s.full(8, turn))
            del work
        assert buffer.capacity <= 2 * buffer.used + 3 * CHUNK, turn
    assert all((array == turn).all() for turn, array in enumerate(kept))
    assert buffer.used <= 64 * len(kept) + 64
    kept.clear()
    assert buffer.used == 0


def test_every_second_one_kept() -> None:
    buffer, kept = ft.ScratchBuffer("256 KiB"), Kept()
    for _ in range(500):
        with ft.scratch(buffer):
            arrays = [np.empty(5_000, np.uint8) for _ in range(20)]
            kept.add(arrays[10])
            del arrays
            churn(1)
    assert kept.intact()
    assert buffer.capacity <= 2 * buffer.used + (3 << 20)
    del kept.arrays[::2]
    with ft.scratch(buffer):
        churn()
    assert kept.intact()
    kept.clear()
    assert buffer.used == 0


def test_large_ones_leave_nothing_behind() -> None:
    """Above an eighth of a chunk an array has its memory to itself, and takes it along."""
    buffer = ft.ScratchBuffer()
    with ft.scratch(buffer):
        arrays = [np.ones(5 * CHUNK, np.uint8) for _ in range(5)]
        assert buffer.used >= 25 * CHUNK
    capacity = buffer.capacity
    arrays.pop()
    assert buffer.capacity <= capacity - 5 * CHUNK
    arrays.clear()
    assert buffer.used == 0
    assert buffer.capacity <= 4 * CHUNK


@pytest.mark.parametrize("free", ["in this thread", "in another", "later, in another"])
def test_freed_anywhere(free: str) -> None:
    buffer, kept = ft.ScratchBuffer(), Kept()
    with ft.scratch(buffer):
        arrays: list[Any] = []
        for _ in range(200):
            arrays = [np.empty(9_000, np.uint8) for _ in range(10)]
            kept.make(1_500)
            if free == "in another":
                in_thread(arrays.clear)
            elif free == "in this thread":
                arrays.clear()
        used = buffer.used
        assert kept.intact()
    if free == "later, in another":
        in_thread(arrays.clear)
    assert used <= 200 * 1_536 + 2 * 10 * 9_024
    assert buffer.capacity <= 2 * used + 2 * CHUNK
    in_thread(kept.clear)
    assert buffer.used == 0


def in_thread(body: Callable[[], Any]) -> None:
    thread = threading.Thread(target=body)
    thread.start()
    thread.join()


def test_a_threads_frees_beside_the_scopes_own_work() -> None:
    buffer, kept = ft.ScratchBuffer(), Kept()
    handed: list[Any] = []
    stop = threading.Event()

    def free() -> None:
        while not stop.is_set() or handed:
            if handed:
                handed.pop()

    threads = [threading.Thread(target=free) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        with ft.scratch(buffer):
            for turn in range(200):
                handed.append(np.full(2_000 + 300 * turn, turn, np.uint8))
                if turn % 50 == 0:
                    kept.make(7_000)
        assert kept.intact()
    stop.set()
    for thread in threads:
        thread.join()
    assert kept.intact()
    kept.clear()
    assert buffer.used == 0


def test_reset_gives_everything_back_and_forgets_the_peak() -> None:
    buffer, kept = ft.ScratchBuffer(), Kept()
    with ft.scratch(buffer):
        for _ in range(40):
            kept.make(100_000)
        assert buffer.capacity >= 4_000_000
        del kept.arrays[1:]
    buffer.reset()
    assert kept.intact()
    assert buffer.used >= 100_000
    assert buffer.peak == buffer.used
    kept.clear()
    buffer.reset()
    assert (buffer.used, buffer.capacity, buffer.peak) == (0, 0, 0)
    with ft.scratch(buffer):
        churn()
