"""stats() and trim(): the numbers add up."""

import json
import pickle

import pytest

import firsttouch as ft

pytestmark = pytest.mark.quick


def test_a_new_pool_has_nothing() -> None:
    counts = ft.stats(ft.pool())._asdict()
    assert counts.pop("small_limit") == ft.stats().small_limit > 0
    assert set(counts.values()) == {0}


def test_the_small_limit_is_the_allocators_own() -> None:
    assert [ft.stats(each).small_limit for each in ("aligned(64)", "guarded()", "numpy_default()")] == [0, 0, 0]
    assert ft.stats("limited(pool(), '1 GiB')").small_limit == ft.stats("pool()").small_limit > 0


def test_the_fields_are_numbers_that_json_can_hold() -> None:
    found = ft.stats()
    again = ft.process.Stats(**json.loads(json.dumps(found._asdict())))
    assert again == found == pickle.loads(pickle.dumps(found))


def test_peaks_count_small_arrays_that_are_gone() -> None:
    pool = ft.pool()
    pool.empty(100_000)
    found = ft.stats(pool)
    assert (found.in_use, found.peak_in_use) == (0, 800_000)
    assert found.peak_in_use <= found.peak_active <= found.peak_held
