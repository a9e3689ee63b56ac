"""Medians of per-round ratios, bootstrap confidence intervals, and the rule that decides a target."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]  # generations of processes by rounds

RESAMPLES = 2000
SINGLE = 1.05  # what no single size may exceed for certain


@dataclass(frozen=True)
class Estimate:
    """A figure with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}]"


def resampled_medians(ratios: Matrix, random: np.random.Generator) -> Matrix:
    """Medians of ratios drawn again with replacement: first processes, then rounds within each."""
    generations, rounds = ratios.shape
    rows = random.integers(generations, size=(RESAMPLES, generations, 1))
    columns = random.integers(rounds, size=(RESAMPLES, generations, rounds))
    drawn = ratios[rows, columns].reshape(RESAMPLES, -1)
    return np.asarray(np.median(drawn, axis=1), np.float64)


def interval(value: float, resampled: Matrix) -> Estimate:
    """The middle 95 % of what resampling gave."""
    low, high = np.percentile(resampled, [2.5, 97.5])
    return Estimate(value, float(low), float(high))


def median(ratios: Matrix) -> Estimate:
    """The median with its interval."""
    return interval(float(np.median(ratios)), resampled_medians(ratios, np.random.default_rng(0)))


def around_median(figures: npt.NDArray[np.float64]) -> tuple[float, float]:
    """A 95 % interval of independent figures' median that supposes nothing of how they are spread.

    Between order statistics, interpolated as by Hettmansperger and Sheather (Statistics & Probability Letters 4, 1986);
    of five figures or fewer it is all of them, which of five covers 93.75 %.
    """
    ordered = np.sort(figures)
    count, wanted = len(ordered), 0.95

    def covered(depth: int) -> float:
        return 1 - 2 * sum(math.comb(count, below) for below in range(depth)) / float(2**count)

    depth = 1
    while depth + 1 <= count // 2 and covered(depth + 1) >= wanted:
        depth += 1
    if covered(depth) <= wanted:
        return float(ordered[0]), float(ordered[-1])
    part = (covered(depth) - wanted) / (covered(depth) - covered(depth + 1))
    share = (count - depth) * part / (depth + (count - 2 * depth) * part)
    low = (1 - share) * ordered[depth - 1] + share * ordered[depth]
    high = (1 - share) * ordered[-depth] + share * ordered[-depth - 1]
    return float(low), float(high)


def geometric_mean(cells: Sequence[Matrix]) -> Estimate:
    """The geometric mean of the cells' medians, with the interval that resampling each cell gives."""
    random = np.random.default_rng(0)
    logs = [np.log(resampled_medians(cell, random)) for cell in cells]
    value = float(np.exp(np.mean([np.log(np.median(cell)) for cell in cells])))
    return interval(value, np.exp(np.mean(logs, axis=0)))


def halves(shape: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """True for one half of the rounds: whole processes where there are several, else every other round."""
    generations, rounds = shape
    first = np.zeros((generations, rounds), bool)
    if generations > 1:
        first[: generations // 2] = True
    else:
        first[:, ::2] = True
    return first


def against_best(ours: Matrix, peers: Mapping[str, Matrix]) -> tuple[Matrix, tuple[str, str]]:
    """Per-round ratios to the best peer, chosen on the other half of the rounds: luck is not picked."""
    ratios = np.empty_like(ours)
    chosen: list[str] = []
    first = halves(ours.shape)
    for half in (first, ~first):
        other = ~half
        best = max(peers, key=lambda name: float(np.median((ours / peers[name])[other])))
        ratios[half] = (ours / peers[best])[half]
        chosen.append(best)
    return ratios, (chosen[0], chosen[1])


@dataclass(frozen=True)
class Verdict:
    """A bar, the figure that was got, and what the interval allows us to say."""

    bar: str
    figure: str
    outcome: str  # passed, failed, not shown, not measured


def judge(bar: str, limit: float, cells: Mapping[str, Matrix]) -> Verdict:
    """Passed where the intervals allow no other reading, failed likewise; not shown in between."""
    mean = geometric_mean(list(cells.values()))
    single = max(SINGLE, limit)
    estimates = {name: median(cell) for name, cell in cells.items()}
    above = [f"{name} {estimate}" for name, estimate in estimates.items() if estimate.low > single]
    if mean.low > limit or above:
        outcome = "failed"
    elif mean.high <= limit:
        outcome = "passed"
    else:
        outcome = "not shown"
    figure = f"geometric mean {mean}"
    if above:
        figure += f"; for certain above {single:g}: " + ", ".join(above)
    return Verdict(bar, figure, outcome)


def losses(ours: str, cells: Mapping[tuple[str, str], Matrix]) -> list[str]:
    """A sentence for each peer that beats us beyond the noise; the keys are (peer, where)."""
    beaten: dict[str, list[str]] = {}
    for (peer, where), ratios in cells.items():
        estimate = median(ratios)
        if estimate.low > 1.0:
            beaten.setdefault(peer, []).append(f"{where} ({estimate})")
    if not beaten:
        return [f"No peer beats {ours} here beyond the noise."]
    return [f"**{peer} beats {ours}** at {', '.join(places)}." for peer, places in beaten.items()]
