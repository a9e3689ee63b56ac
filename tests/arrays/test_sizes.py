"""Sizes around every limit and size class: arrays do not overlap, are aligned, and are freed completely."""

import itertools

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import KIB, MIB, Bytes, fill, intact

pytestmark = pytest.mark.quick

SMALL = ft.stats().small_limit
LIMITS = [4 * KIB, SMALL, 32 * KIB, 64 * KIB, 128 * KIB, 256 * KIB, MIB, 2 * MIB, 4 * MIB, 8 * MIB, 16 * MIB]
#: Free spans are filed exactly below 32 units, then eight to each power of two; units are of 4 KiB and 64 KiB.
CLASSES = [units * unit for unit in (4 * KIB, 64 * KIB) for units in (8, 31, 32, 33, 36, 63, 64, 72, 511, 512, 513)]
SIZES = sorted({size + more for size in LIMITS + CLASSES for more in (-64, -1, 0, 1, 4096) if size + more > 0})
SIZES += [32 * MIB - 1, 32 * MIB, 32 * MIB + 1]

ALLOCATORS = ["ft.pool()", "ft.pool(ft.pages(huge=False))", "ft.pages()", "ft.pages(huge='thp')"]


def address(array: Bytes) -> int:
    return int(array.__array_interface__["data"][0])


@pytest.mark.parametrize("expression", ALLOCATORS)
def test_every_size_keeps_its_pattern(expression: str) -> None:
    allocator = eval(expression)
    living: list[tuple[Bytes, int]] = []
    with ft.use(allocator):
        for seed, size in enumerate([*SIZES, *reversed(SIZES)]):
            array = np.empty(size, np.uint8)
            fill(array, seed)
            living.append((array, seed))
            if len(living) > 12:
                old, its = living.pop(seed % 12)
                assert intact(old, its), f"{old.size} bytes at {address(old):#x}"
    for array, seed in living:
        assert intact(array, seed)
    spans = sorted((address(array), array.size) for array, _ in living)
    assert all(at + size <= after for (at, size), (after, _) in itertools.pairwise(spans))
    del array, living, old
    assert ft.stats(allocator).active == 0


def test_small_arrays_of_a_pool_are_numpys() -> None:
    with ft.use(ft.pool()) as pool:
        arrays = [np.full(size, size % 251, np.uint8) for size in range(0, SMALL, 509)]
    assert ft.stats(pool).allocations == 0
    assert all((array == array.size % 251).all() for array in arrays)


def test_large_ones_lie_on_huge_pages() -> None:
    with ft.use(ft.pages(huge="thp")):
        assert all(address(np.empty(size, np.uint8)) % (2 * MIB) == 0 for size in (2 * MIB, 3 * MIB, 70 * MIB))


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
