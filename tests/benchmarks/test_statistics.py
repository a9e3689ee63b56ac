"""The statistics that decide verdicts."""

import numpy as np
import pytest

from benchmarks.measuring import AXES, Matrix, against_best, both_axes, judge, losses, median


def noise(centre: float, width: float = 0.01, seed: int = 0) -> Matrix:
    return centre * (1.0 + width * np.random.default_rng(seed).normal(size=(4, 4)))


def test_intervals_cover_at_about_their_rate() -> None:
    random = np.random.default_rng(1)
    estimates = [median(1.0 + 0.05 * random.normal(size=(4, 4))) for _ in range(100)]
    assert sum(estimate.low <= 1.0 <= estimate.high for estimate in estimates) >= 85


def test_a_peer_that_was_lucky_in_one_half_gains_nothing_by_it() -> None:
    ours = np.ones((4, 4))
    steady, lucky = np.full((4, 4), 1.0), np.full((4, 4), 1.2)
    lucky[:2] = 0.8  # best in the first half only
    ratios, chosen = against_best(ours, {"steady": steady, "lucky": lucky})
    assert chosen == ("steady", "lucky")  # for each half, what was best in the other
    np.testing.assert_allclose(ratios[:2], 1.0)
    np.testing.assert_allclose(ratios[2:], 1 / 1.2)


@pytest.mark.parametrize(
    ("centres", "outcome"),
    [((0.9, 0.95), "passed"), ((1.2, 1.3), "failed"), ((1.0, 1.0), "not shown"), ((0.6, 1.2), "failed")],
)
def test_a_bar_is_passed_only_where_no_other_reading_is_left(centres: tuple[float, float], outcome: str) -> None:
    cells = {f"case {i}": noise(centre, seed=i) for i, centre in enumerate(centres)}
    assert judge("bar", 1.0, cells).outcome == outcome


def test_single_cases_that_fail_and_peers_that_win_are_named() -> None:
    verdict = judge("bar", 1.0, {"good": noise(0.5), "bad": noise(1.3)})
    assert "bad" in verdict.figure
    assert "good" not in verdict.figure
    assert judge("bar", 1.15, {"one": noise(1.12, 0.001)}).outcome == "passed"
    cells = {("slow", "1 MiB"): noise(0.8), ("quick", "8 MiB"): noise(1.25), ("quick", "64 KiB"): noise(0.9)}
    (sentence,) = losses("firsttouch", cells)
    assert sentence.startswith("**quick beats firsttouch** at 8 MiB (1.2")
    assert "64 KiB" not in sentence
    assert losses("firsttouch", {("slow", "1 MiB"): noise(0.8)}) == ["No peer beats firsttouch here beyond the noise."]


@pytest.mark.parametrize(
    ("centres", "outcome"),
    [
        ((0.9, 1.0, 1.0, 1.0), "1, 0, 0"),
        ((1.0, 1.0, 1.0, 0.3), "1, 0, 0"),
        ((1.0, 1.0, 1.0, 1.0), "0, 1, 0"),
        ((0.8, 0.8, 1.3, 0.3), "0, 1, 0"),  # better and worse
        ((1.0, 1.0, 1.2, 1.0), "0, 0, 1"),
    ],
)
def test_a_peer_is_beaten_where_nothing_is_worse(centres: tuple[float, ...], outcome: str) -> None:
    ours = {axis: noise(centre, 0.001) for axis, centre in zip(AXES, centres, strict=True)}
    (row,) = both_axes(
        "ours", ["peer"], {"program": {"ours": ours, "peer": {axis: noise(1.0, 0.001) for axis in AXES}}}
    ).rows
    assert row[0] == "peer"
    assert row[-1] == outcome
    assert row[1].startswith(f"{centres[0]:.3f}")
