"""Pools and scratch buffers over pages on given nodes: what they do, and the placements that are rejected."""

import numpy as np
import pytest

import firsttouch as ft
from tests.placement import granted

pytestmark = pytest.mark.quick


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
