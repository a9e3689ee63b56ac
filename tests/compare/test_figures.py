"""Confidence intervals have their nominal coverage on simulated times whose true values are known."""

import numpy as np
import pytest

from firsttouch.tools.compare.runs import Run, speedup
from firsttouch.tools.measuring.statistics import around_median


def runs(walls: np.ndarray) -> list[Run]:
    return [Run(float(wall), 0.0, 0.0, 0, 0, 0, 0) for wall in walls]


@pytest.mark.parametrize("rounds", [5, 7, 10])
def test_equals_seem_to_differ_in_one_of_twenty_comparisons(rounds: int) -> None:
    random = np.random.default_rng(3)
    turns, missed = 400, 0
    for _ in range(turns):
        first, second = np.exp(random.normal(0.0, 0.05, (2, rounds)))
        found = speedup(runs(first), runs(second))
        assert found.low <= found.value <= found.high
        missed += not found.low <= 1 <= found.high
    assert missed / turns < 0.085  # the sign test's interval for five is one of 93.75 %; two deviations of chance


def test_few_figures_have_their_ends_as_an_interval() -> None:
    assert around_median(np.array([3.0])) == (3.0, 3.0)
    assert around_median(np.array([5.0, 1.0, 2.0, 3.0, 4.0])) == (1.0, 5.0)


def test_many_figures_have_an_interval_between_two_of_them() -> None:
    # Of ten, the second to the ninth cover 97.9 %, and the third to the eighth 89.1 %.
    low, high = around_median(np.arange(1.0, 11.0))
    assert 2.0 < low < 3.0
    assert low - 1.0 == pytest.approx(10.0 - high)


@pytest.mark.parametrize("count", [1023, 1024, 10_000])
def test_any_number_of_runs_has_an_interval(count: int) -> None:
    low, high = around_median(np.arange(count, dtype=float))
    middle, wide = (count - 1) / 2, 0.98 * np.sqrt(count)  # as of a normal distribution
    assert low == pytest.approx(middle - wide, rel=0.01)
    assert high == pytest.approx(middle + wide, rel=0.01)
