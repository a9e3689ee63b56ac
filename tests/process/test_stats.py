"""stats() and trim(): the numbers add up."""

import json
import pickle
import timeit

import pytest

import firsttouch as ft

pytestmark = pytest.mark.quick


def test_a_new_pool_has_nothing() -> None:
    counts = ft.stats(ft.pool())._asdict()
    assert counts.pop("small_limit") == ft.stats().small_limit > 0
    assert set(counts.values()) == {0}


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


def test_a_free_takes_no_longer_among_many_budgets() -> None:
    budgets = [ft.limited(ft.pool(), "1 GiB") for _ in range(1000)]
    arrays = [budget.empty(20_000, "u1") for budget in budgets]

    def least(budget: ft.Allocator) -> float:
        return min(timeit.repeat(lambda: budget.empty(20_000, "u1"), number=20, repeat=5))

    assert least(budgets[-1]) < 50 * least(budgets[0])  # 1,500 times, where each was asked
    del arrays
