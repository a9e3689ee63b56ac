"""Figures of many runs: a speed-up with its interval, medians with their quartiles."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from firsttouch.tools.compare.runs import Run
from firsttouch.tools.measuring.statistics import Estimate, Matrix, around_median, median


def column(runs: Sequence[Run], name: str) -> Matrix:
    """One figure of each run."""
    return np.array([getattr(run, name) for run in runs], float)


def speedup(default: Sequence[Run], other: Sequence[Run]) -> Estimate:
    """How many times as fast `other` is: the median of the rounds' ratios, with its 95 % bootstrap interval.

    Of few rounds the bootstrap's is too narrow (of seven, it missed the truth in 14 of 100 cases), so it is widened to
    that of the order statistics.
    """
    ratios = column(default, "wall") / column(other, "wall")
    found, (low, high) = median(ratios[:, np.newaxis]), around_median(ratios)
    return Estimate(found.value, min(found.low, low), max(found.high, high))


def quartiles(runs: Sequence[Run], name: str) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile of a figure."""
    low, middle, high = np.percentile(column(runs, name), [25, 50, 75])
    return float(low), float(middle), float(high)
