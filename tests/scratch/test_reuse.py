"""Chunks start again once all their arrays are dead: loops hold a few, whatever the number of iterations."""

from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.scratch.arrays import CHUNK, LARGE, Kept, churn

pytestmark = pytest.mark.quick


def test_returned_arrays_pin_no_chunk() -> None:
    buffer = ft.ScratchBuffer()

    @ft.scratch(buffer)
    def small(turn: int) -> Any:
        return np.full(500, turn), {"x": [np.full(300, turn)]}

    kept = [small(turn) for turn in range(1_000)]
    assert buffer.used == 0
    assert buffer.capacity <= 2 * (128 << 10)
    assert all((x == turn).all() and (y["x"][0] == turn).all() for turn, (x, y) in enumerate(kept))


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
