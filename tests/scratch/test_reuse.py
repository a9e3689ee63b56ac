"""Chunks start again once all their arrays are dead: loops hold a few, whatever the number of iterations."""

import threading
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.scratch.arrays import CHUNK, LARGE, MIDDLE, Kept, churn

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("nbytes", [2_000, 20_000, 130_000, 1_000_000])
def test_a_loop_in_one_scope_holds_two_or_three_chunks(nbytes: int) -> None:
    buffer = ft.ScratchBuffer("1 MiB")
    with ft.scratch(buffer):
        x = np.ones(nbytes // 8)
        for _ in range(10_000 if nbytes < 500_000 else 1_000):
            x = x * 0.5 + 1
        assert abs(x - 2).max() < 1e-9
        assert buffer.capacity <= 3 * CHUNK


def test_small_arrays_kept_gather_in_chunks() -> None:
    """Each keeps its chunk, but the next ones are cut off the same chunk."""
    buffer, kept = ft.ScratchBuffer(), []
    for turn in range(3_000):
        with ft.scratch(buffer) as s:
            work = s.ones(1_000) + np.ones(1_000)
            kept.append(s.full(8, turn))
            del work
    assert buffer.capacity <= 5 * (buffer.used + (128 << 10))
    assert all((array == turn).all() for turn, array in enumerate(kept))
    kept.clear()
    assert buffer.used == 0


def test_returned_arrays_pin_no_chunk() -> None:
    buffer = ft.ScratchBuffer()

    @ft.scratch(buffer)
    def small(turn: int) -> Any:
        return np.full(500, turn), {"x": [np.full(300, turn)]}

    kept = [small(turn) for turn in range(1_000)]
    assert buffer.used == 0
    assert buffer.capacity <= 2 * (128 << 10)
    assert all((x == turn).all() and (y["x"][0] == turn).all() for turn, (x, y) in enumerate(kept))


def test_large_ones_are_the_pools() -> None:
    buffer = ft.ScratchBuffer("1 MiB")
    with ft.scratch(buffer):
        arrays = [np.ones(5 * CHUNK, np.uint8) for _ in range(5)]
        assert (buffer.used, buffer.capacity) == (0, 0)
        assert "pool(" in repr(ft.get_allocator(arrays[0]))


def test_a_threads_frees_beside_the_scopes_own_work() -> None:
    buffer, kept = ft.ScratchBuffer("1 MiB"), Kept()
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


def test_several_threads_on_one_buffer() -> None:
    """Each has scopes of its own; none sees another's arrays change."""
    buffer, intact = ft.ScratchBuffer("64 KiB"), []

    def work() -> None:
        for _ in range(100):
            kept = Kept()
            with ft.scratch(buffer):
                for size in (2_000, 5_000, MIDDLE):
                    kept.make(size)
                    np.ones(700) * 2 + 1
            intact.append(kept.intact())

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert intact == [True] * 400
    assert buffer.used == 0


def test_reset_gives_everything_back_and_forgets_the_peak() -> None:
    buffer, kept = ft.ScratchBuffer("1 MiB"), Kept()
    with ft.scratch(buffer):
        for _ in range(40):
            kept.make(100_000)
        kept.make(LARGE)
        assert buffer.capacity >= 4_000_000
        del kept.arrays[1:]
        buffer.reset()
    assert kept.intact()
    assert buffer.used == buffer.peak >= 100_000
    assert buffer.capacity == CHUNK
    kept.clear()
    buffer.reset()
    assert (buffer.used, buffer.capacity, buffer.peak) == (0, 0, 0)
    with ft.scratch(buffer):
        churn()
