"""Short numerical programs as a whole: each run is a new process, so that every first touch counts."""

from __future__ import annotations

from benchmarks.experiments.programs import compared
from benchmarks.kernels import NAMES
from benchmarks.measuring import Plan, Section


def run(quick: bool) -> Section:
    """Measure every kernel under every contender."""
    asked = "the gain of unmodified programs, compared with NumPy's default and every peer; as for whole programs."
    modules = {name: f"benchmarks.kernels.{name}" for name in (NAMES[:2] if quick else NAMES)}
    return compared(Section("kernels", "Numerical kernels", asked), modules, Plan.whole_programs(quick), quick)
