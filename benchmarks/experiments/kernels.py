"""Everyday programs as a whole: each run is a new process, so that every first touch counts."""

from __future__ import annotations

from benchmarks.everyday import PROGRAMS
from benchmarks.experiments.programs import compared
from benchmarks.measuring import Section

KERNELS = {name: f"benchmarks.everyday:{function.__name__}" for name, function in PROGRAMS.items()}


def run(quick: bool) -> Section:
    """Measure every program under every contender."""
    asked = "the gain of unmodified programs, compared with NumPy's default and every peer; as for whole programs."
    programs = dict(list(KERNELS.items())[:2]) if quick else KERNELS
    return compared(Section("kernels", "Numerical kernels", asked), programs, 2 if quick else 7, quick)
