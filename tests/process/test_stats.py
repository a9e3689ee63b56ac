"""stats() and trim(): the numbers add up."""

import copy
import json
import pickle

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import KIB, MIB

pytestmark = pytest.mark.quick


def test_a_new_pool_has_nothing() -> None:
    counts = ft.stats(ft.pool())._asdict()
    assert counts.pop("small_limit") == ft.stats().small_limit > 0
    assert set(counts.values()) == {0}


def test_the_fields_are_numbers_that_json_can_hold() -> None:
    found = ft.stats()
    again = ft.process.Stats(**json.loads(json.dumps(found._asdict())))
    assert again == found == pickle.loads(pickle.dumps(found)) == copy.deepcopy(found)
    assert hash(again) == hash(found)
    assert again != ft.process.Stats(**found._asdict() | {"idle": found.idle + 1})
    assert repr(found).startswith(f"Stats(in_use={found.in_use}, active={found.active}, idle=")


def test_what_lives_and_what_is_kept() -> None:
    pool = ft.pool(decay=None)
    sizes = [40 * KIB + 1, 300 * KIB, 3 * MIB, 7 * MIB + 5]
    with ft.use(pool):
        arrays = [np.empty(size, np.uint8) for size in sizes]
        found = ft.stats(pool)
        assert found.in_use == sum(sizes) == found.allocated_bytes
        assert found.in_use <= found.active <= found.mapped
        assert (found.blocks, found.allocations, found.recycled, found.idle) == (4, 4, 0, 0)
        assert found.first_touched_bytes == found.active
        del arrays
        found = ft.stats(pool)
        assert (found.in_use, found.active, found.blocks, found.allocations) == (0, 0, 0, 4)
        assert found.idle == found.first_touched_bytes == found.peak_active == found.peak_held
        assert found.peak_in_use == sum(sizes)


def test_peaks_count_small_arrays_that_are_gone() -> None:
    pool = ft.pool()
    pool.empty(100_000)
    found = ft.stats(pool)
    assert (found.in_use, found.peak_in_use) == (0, 800_000)
    assert found.peak_in_use <= found.peak_active <= found.peak_held


def test_recycled_and_first_touched_make_what_was_served() -> None:
    pool = ft.pool(decay=None)
    served = 0
    with ft.use(pool):
        for turn in range(300):
            array = np.empty(64 * KIB * (1 + turn * 37 % 100), np.uint8)
            served += ft.stats(pool).active
            del array
    found = ft.stats(pool)
    assert found.recycled_bytes + found.first_touched_bytes == served
    assert found.first_touched_bytes == found.first_touched_small_bytes + found.first_touched_huge_bytes
    assert found.allocations == 300
    assert 200 < found.recycled < 300
    assert found.first_touched_bytes < served // 10


def test_trim_gives_back_what_is_idle() -> None:
    pool = ft.pool(decay=None)
    with ft.use(pool):
        kept = np.ones(5 * MIB, np.uint8)
        arrays = [np.ones(size, np.uint8) for size in (100 * KIB, MIB, 9 * MIB)]
        arrays.clear()
    idle = ft.stats(pool).idle
    assert idle > 10 * MIB
    gone = ft.trim(pool)
    after = ft.stats(pool)
    assert after.purged_bytes == gone
    assert idle - gone <= after.idle < 2 * MIB  # the rest of a huge page that `kept` lies on
    assert ft.trim(pool) == 0
    assert kept.all()
    del kept
    assert ft.trim(pool) >= 5 * MIB
    assert ft.stats(pool).idle == 0
