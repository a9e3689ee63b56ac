"""`firsttouch advise` compared with measurements: its estimate from one plain run, and the actual gain from pooled
memory.
"""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
import time

import numpy as np

from benchmarks.experiments.memory import PROGRAMS
from benchmarks.kernels import NAMES as KERNELS
from benchmarks.measuring import Plan, Section, Verdict, collect, median
from benchmarks.programs import NAMES as WHOLE
from firsttouch.tools.measuring.contenders import FIRSTTOUCH, NUMPY
from firsttouch.tools.measuring.processes import Call
from firsttouch.tools.measuring.report import Table

# ---- What is measured, in a process of its own


#: The module of each program that is not one of the small ones above.
MODULES = {
    **{name: f"benchmarks.kernels.{name}" for name in KERNELS},
    **{name: f"benchmarks.programs.{name}" for name in WHOLE},
}
NAMES = (*KERNELS, *PROGRAMS, *WHOLE)


def one(name: str) -> None:
    """Run one program from beginning to end."""
    if name in PROGRAMS:
        PROGRAMS[name]()
    else:
        importlib.import_module(MODULES[name]).run()


def measure(name: str) -> dict[str, float]:
    """Return seconds and processor seconds after the imports, first touch included."""
    if name in MODULES:
        importlib.import_module(MODULES[name])
    start, used = time.perf_counter(), time.process_time()
    one(name)
    return {"seconds": time.perf_counter() - start, "processor": time.process_time() - used}


# ---- The experiment


BAR = 0.8
FOOTPRINT = 128 << 20
RESAMPLES = 2000


def estimated(program: str, runs: int) -> float:
    """Return the seconds that pooled memory would save according to the command, the median of some runs."""
    code = f"from benchmarks.experiments.advise import one; one({program!r})"
    words = [sys.executable, "-m", "firsttouch", "advise", "--json", "-", "-c", code]
    found = []
    for _ in range(runs):
        done = subprocess.run(words, env=NUMPY.full_environment(), stdout=subprocess.PIPE, text=True, check=True)
        found.append(float(json.loads(done.stdout)["gain_seconds"]))
    return float(np.median(found))


def correlation(estimates: list[float], gains: list[float]) -> tuple[float, float, float]:
    """Return Spearman's rank correlation, with a 95 % bootstrap interval over the programs."""
    from scipy.stats import spearmanr

    pairs = np.array([estimates, gains])
    draws = np.random.default_rng(0).integers(pairs.shape[1], size=(RESAMPLES, pairs.shape[1]))
    resampled = [float(spearmanr(*pairs[:, draw]).statistic) for draw in draws]
    low, high = np.nanpercentile(resampled, [2.5, 97.5])
    return float(spearmanr(*pairs).statistic), float(low), float(high)


def run(quick: bool) -> Section:
    """Advise on every program once or a few times, then measure it in interleaved whole processes."""
    section = Section(
        "advise",
        "The estimates of `firsttouch advise`, and the actual gains",
        f"the rank correlation of the estimated and the measured gain over all programs is above {BAR:g}.",
    )
    table = Table("", ["program", "NumPy's time", "estimated gain", "measured gain", "of the time"])
    estimates, gains = [], []
    for name in NAMES[:4] if quick else NAMES:
        advised = estimated(name, 1 if quick else 3)
        call = Call("benchmarks.experiments.advise", "measure", {"name": name})
        samples = collect([NUMPY, FIRSTTOUCH], call, Plan(2 if quick else 5 if name in WHOLE else 12, 1), FOOTPRINT)
        plain, pooled = (samples.column(contender, "processor") for contender in (NUMPY, FIRSTTOUCH))
        seconds, share = median(plain), median((plain - pooled) / plain)
        estimates.append(advised / seconds.value)
        gains.append(share.value)
        words = f"{share.value:.1%} [{share.low:.1%}, {share.high:.1%}]"
        gained = f"{median(plain - pooled).value * 1e3:,.1f} ms"
        table.rows.append([name, f"{seconds.value * 1e3:,.0f} ms", f"{estimates[-1]:.1%}", words, gained])
        section.raw[name] = {"estimated_seconds": advised, **samples.replies}
    section.tables.append(table)
    value, low, high = correlation(estimates, gains)
    outcome = "not measured" if quick else "passed" if low > BAR else "failed" if high <= BAR else "not shown"
    figure = f"{value:.2f} [{low:.2f}, {high:.2f}] over {len(gains)} programs"
    section.verdicts.append(Verdict(f"rank correlation above {BAR:g}", figure, outcome))
    section.notes.append(
        "Times are processor time after the imports, which a busy machine disturbs less than wall time;"
        " the programs run in one thread. Only the kernel's work is estimated; warmer caches gain more."
    )
    return section
