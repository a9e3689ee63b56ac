"""`firsttouch advise` beside measurements: its range from one plain run, and the actual gain from pooled memory."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np

from benchmarks.experiments.kernels import KERNELS
from benchmarks.experiments.programs import FOOTPRINT, WHOLE, measure
from benchmarks.measuring import FIRSTTOUCH, NUMPY, Section, Verdict, collect, median
from firsttouch.tools.measuring.contenders import environment
from firsttouch.tools.measuring.report import Table

#: The least rank correlation, and the least part of the programs whose gain lies in the range.
BAR, COVERED = 0.9, 0.8
RESAMPLES = 2000


def estimated(program: str) -> tuple[float, float]:
    """Return the seconds that pooled memory would save at least and at most, according to the command."""
    code = f"from benchmarks.experiments.programs import imported; imported({program!r})()"
    words = [sys.executable, "-m", "firsttouch", "advise", "--json", "-", "-c", code]
    done = subprocess.run(words, env=environment(NUMPY), stdout=subprocess.PIPE, text=True, check=True)
    low, high = json.loads(done.stdout)["gain_seconds"]
    return low, high


def correlation(estimates: list[float], gains: list[float]) -> tuple[float, float, float]:
    """Return Spearman's rank correlation, with a 95 % bootstrap interval over the programs."""
    from scipy.stats import spearmanr

    pairs = np.array([estimates, gains])
    draws = np.random.default_rng(0).integers(pairs.shape[1], size=(RESAMPLES, pairs.shape[1]))
    resampled = [float(spearmanr(*pairs[:, draw]).statistic) for draw in draws]
    low, high = np.nanpercentile(resampled, [2.5, 97.5])
    return float(spearmanr(*pairs).statistic), float(low), float(high)


def run(quick: bool) -> Section:
    """Advise on every program, then measure it in interleaved whole processes."""
    section = Section(
        "advise",
        "The estimates of `firsttouch advise`, and the actual gains",
        f"the rank correlation of the estimated and the measured gain over all programs is above {BAR:g}, and at least"
        f" {COVERED:.0%} of the gains lie in the estimated range.",
    )
    table = Table("", ["program", "NumPy's time", "estimated gain", "measured gain", "in the range"])
    estimates, gains, inside = list[float](), list[float](), 0
    for name, program in list({**KERNELS, **WHOLE}.items())[: 4 if quick else None]:
        low, high = estimated(program)
        rounds = 2 if quick else 5 if name in WHOLE else 12
        samples = collect([NUMPY, FIRSTTOUCH], measure, rounds, FOOTPRINT, program=program)
        plain, pooled = (samples.column(contender, "processor") for contender in (NUMPY, FIRSTTOUCH))
        saved, is_inside = median(plain - pooled), low <= median(plain - pooled).value <= high
        estimates.append((low + high) / 2)
        gains.append(saved.value)
        inside += is_inside
        words = f"{saved.value * 1e3:,.0f} ms [{saved.low * 1e3:,.0f}, {saved.high * 1e3:,.0f}]"
        between, time_ = f"{low * 1e3:,.0f} to {high * 1e3:,.0f} ms", f"{median(plain).value * 1e3:,.0f} ms"
        table.rows.append([name, time_, between, words, "yes" if is_inside else "no"])
        section.raw[name] = {"estimated_seconds": [low, high], **samples.replies}
    section.tables.append(table)
    value, low, high = correlation(estimates, gains)
    outcome = "not measured" if quick else "passed" if low > BAR else "failed" if high <= BAR else "not shown"
    figure = f"{value:.2f} [{low:.2f}, {high:.2f}] over {len(gains)} programs"
    section.verdicts.append(Verdict(f"rank correlation above {BAR:g}", figure, outcome))
    outcome = "not measured" if quick else "passed" if inside >= COVERED * len(gains) else "failed"
    section.verdicts.append(Verdict(f"at least {COVERED:.0%} in the range", f"{inside} of {len(gains)}", outcome))
    section.notes.append(
        "Times are processor time after the imports, which a busy machine disturbs less than wall time;"
        " the programs run in one thread."
    )
    return section
