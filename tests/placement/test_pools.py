"""Pools and scratch buffers over pages on given nodes: what they do, and the placements that are rejected."""

from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.placement import granted

pytestmark = pytest.mark.quick

POLICIES: list[Any] = [0, "bind:0", "interleave:all", "local", "preferred:0"]


@pytest.mark.parametrize("numa", POLICIES, ids=str)
def test_a_pool_over_placed_pages_recycles_them(numa: Any) -> None:
    pool = ft.pool(ft.pages("thp", numa=numa), decay=None)
    assert repr(pool) == repr(eval(repr(pool), vars(ft)))
    first = pool.ones(1 << 18)
    receipt = granted(first)
    assert receipt.numa in ("bind:0", "interleave:0", "preferred:0", "local")
    address = first.ctypes.data
    del first
    assert pool.empty(1 << 18).ctypes.data == address
    assert ft.stats(pool).recycled == 1


def test_a_scratch_buffer_over_a_pool_over_placed_pages() -> None:
    buffer = ft.ScratchBuffer("64 KiB", ft.pool(ft.numa(0)))
    assert repr(eval(repr(buffer), vars(ft))) == repr(buffer)
    with ft.scratch(buffer) as s:
        assert not s.zeros(1000).any()
    large = buffer.zeros(1 << 20)
    receipt = granted(np.frombuffer(large, np.uint8))
    assert "numa='bind:0'" in receipt.asked  # large ones are the pool's


def test_what_a_pool_will_use_again_is_not_bound_elsewhere() -> None:
    pool, pages = ft.pool(ft.pages(numa="bind:0")), ft.pages(numa="bind:0")
    for allocator, policy in ((pool, "bind:0"), (ft.filled(pages), "interleave:0"), (pages, "interleave:0")):
        array = allocator.zeros(4 << 20, np.uint8)
        ft.migrate(array, "interleave:all")
        receipt = granted(array)
        assert receipt.numa == policy
