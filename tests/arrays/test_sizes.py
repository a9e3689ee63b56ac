"""Small arrays, which pools leave to NumPy, and very large ones; the contract in Rust has every size between."""

import numpy as np
import pytest

import firsttouch as ft

pytestmark = pytest.mark.quick


def test_four_gibibytes_and_more() -> None:
    """Lengths and counts of units beyond 32 bits; only a few pages of it are touched."""
    with ft.use(ft.pool()) as pool:
        array = np.zeros((4 << 30) + 12345, np.uint8)
        array[:: 1 << 29] = 7
        array[-1] = 7
        assert int(array[:: 1 << 29].sum()) == 7 * 9
        found = ft.stats(pool)
        assert found.in_use == array.size
        assert found.active >= array.size
        del array
    assert ft.stats(pool).in_use == 0
    ft.trim(pool)
