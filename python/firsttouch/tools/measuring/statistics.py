"""Medians of per-round ratios, their confidence intervals, and the rules for verdicts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]  # generations of processes by rounds

RESAMPLES = 2000


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


#: A difference below this is none, however certain.
LEAST = 0.02


def noise(equals: Estimate) -> float:
    """Return how far two equal contenders are apart: their ratio's distance from 1, or half its interval if larger."""
    return max(equals.value - 1, 1 / equals.value - 1, math.sqrt(equals.high / equals.low) - 1)


def margin(equals: Estimate) -> float:
    """Return by how much a ratio must differ from 1 to be a difference: the noise of two equal contenders, or 2 %."""
    return max(LEAST, noise(equals))


def difference(speedup: Estimate, equals: Estimate) -> str:
    """Return "faster", "slower", "unsure" or "none": the rule by which everything here says that there is a difference.

    A contender is faster, or slower, only if the whole interval of its speed-up is further from 1 than the margin. It
    is unsure whether it is faster if only a part of the interval is.
    """
    bar = 1 + margin(equals)
    if speedup.low > bar:
        return "faster"
    if speedup.high < 1 / bar:
        return "slower"
    return "unsure" if speedup.high > bar else "none"


def resampled_medians(ratios: Matrix, random: np.random.Generator) -> Matrix:
    """Return medians of ratios drawn with replacement: first processes, then rounds within each."""
    generations, rounds = ratios.shape
    rows = random.integers(generations, size=(RESAMPLES, generations, 1))
    columns = random.integers(rounds, size=(RESAMPLES, generations, rounds))
    drawn = ratios[rows, columns].reshape(RESAMPLES, -1)
    return np.asarray(np.median(drawn, axis=1), np.float64)


def interval(value: float, resampled: Matrix) -> Estimate:
    """Return the middle 95 % of the resampled values."""
    low, high = np.percentile(resampled, [2.5, 97.5])
    return Estimate(value, float(low), float(high))


def median(ratios: Matrix) -> Estimate:
    """Return the median with its interval."""
    return interval(float(np.median(ratios)), resampled_medians(ratios, np.random.default_rng(0)))


def around_median(figures: npt.NDArray[np.float64]) -> tuple[float, float]:
    """Return a distribution-free 95 % interval for the median of independent figures.

    Between order statistics, interpolated as by Hettmansperger and Sheather (Statistics & Probability Letters 4, 1986).
    For five figures or fewer it is their whole range, which with five covers 93.75 %.
    """
    ordered = np.sort(figures)
    count, wanted = len(ordered), 0.95

    # How many of the 2**count ways in which figures lie below or above the median have fewer than `depth` below it, and
    # how many have just as many: in integers, whose quotients do not overflow.
    depth, fewer, as_many = 1, 1, count

    def covered(outside: int) -> float:
        return float(1 - 2 * outside / 2**count)

    while depth + 1 <= count // 2 and covered(fewer + as_many) >= wanted:
        depth += 1
        fewer, as_many = fewer + as_many, as_many * (count - depth + 1) // depth
    here, deeper = covered(fewer), covered(fewer + as_many)
    if here <= wanted:
        return float(ordered[0]), float(ordered[-1])
    part = (here - wanted) / (here - deeper)
    share = (count - depth) * part / (depth + (count - 2 * depth) * part)
    low = (1 - share) * ordered[depth - 1] + share * ordered[depth]
    high = (1 - share) * ordered[-depth] + share * ordered[-depth - 1]
    return float(low), float(high)


def geometric_mean(cells: Sequence[Matrix]) -> Estimate:
    """Return the geometric mean of the cells' medians, with the interval from resampling each cell."""
    random = np.random.default_rng(0)
    logs = [np.log(resampled_medians(cell, random)) for cell in cells]
    value = float(np.exp(np.mean([np.log(np.median(cell)) for cell in cells])))
    return interval(value, np.exp(np.mean(logs, axis=0)))


@dataclass(frozen=True)
class Verdict:
    """A target, the measured figure, and the conclusion that its interval allows."""

    bar: str
    figure: str
    outcome: str  # passed, failed, not shown, not measured
