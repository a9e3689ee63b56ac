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
