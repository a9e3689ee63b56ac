"""Buffers on memory that other arrays may lie on, too: each block is freed by the buffer that allocated it."""

import numpy as np

import firsttouch as ft

SIZES = (100, 5000, 70_000, 300_000, 3_000_000)


def test_a_buffer_on_a_buffer_that_is_in_use_itself() -> None:
    inner = ft.ScratchBuffer()
    kept = inner.full(1000, 3, "u1")
    outer = ft.ScratchBuffer(upstream=inner)
    for _ in range(20):
        above = [outer.full(n, 1, "u1") for n in SIZES]
        below = [inner.full(n, 2, "u1") for n in SIZES]
        assert all((array == 1).all() for array in above)
        assert all((array == 2).all() for array in below)
        assert all(ft.get_allocator(array) == outer for array in above)
        assert all(ft.get_allocator(array) == inner for array in below)
    assert (kept == 3).all()


def test_a_buffer_on_an_array_that_an_adaptor_knows() -> None:
    tracked = ft.tracked(ft.pool())
    storage = tracked.zeros(1 << 20, "u1")
    buffer = ft.FixedBuffer(storage)
    first = buffer.full(1000, 3, "u1")
    assert np.shares_memory(first, storage)
    del first
    other = tracked.full(1 << 20, 9, "u1")
    storage[:] = 1
    assert (other == 9).all()
