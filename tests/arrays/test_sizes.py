"""Small arrays, which pools leave to NumPy, and very large ones; the contract in Rust has every size between."""

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import MIB

pytestmark = pytest.mark.quick

SMALL = ft.stats().small_limit


def test_small_arrays_of_a_pool_are_numpys() -> None:
    with ft.use(ft.pool()) as pool:
        arrays = [np.full(size, size % 251, np.uint8) for size in range(0, SMALL, 509)]
    assert ft.stats(pool).allocations == 0
    assert all((array == array.size % 251).all() for array in arrays)


def test_large_ones_lie_on_huge_pages() -> None:
    with ft.use(ft.pages(huge="thp")):
        assert all(np.empty(size, np.uint8).ctypes.data % (2 * MIB) == 0 for size in (2 * MIB, 3 * MIB, 70 * MIB))


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
