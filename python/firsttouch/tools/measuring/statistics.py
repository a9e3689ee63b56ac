"""Medians with their confidence intervals, and the rule by which everything here says "no difference"."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f}" + (f" [{self.low:.3f}, {self.high:.3f}]" if self.low < self.high else "")


def estimate(figures: Sequence[float]) -> Estimate:
    """Return the median with its 95 % interval, which lies between two of the figures.

    It is that of the sign test: of few figures, a bootstrap's interval is too narrow. For up to five it is their range,
    which with five covers 93.75 %.
    """
    ordered = np.sort(np.asarray(figures, float))
    outside = max(0, int(len(ordered) / 2 - 0.98 * math.sqrt(len(ordered))))
    return Estimate(float(np.median(ordered)), float(ordered[outside]), float(ordered[-1 - outside]))


#: A difference below this is none, however certain.
LEAST = 0.02


def margin(equals: Estimate) -> float:
    """Return by how much a ratio must differ from 1 to be a difference.

    That is how far two equal contenders are apart: their ratio's distance from 1, or half its interval if larger; but
    at least 2 %.
    """
    return max(LEAST, equals.value - 1, 1 / equals.value - 1, math.sqrt(equals.high / equals.low) - 1)


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
