"""What rules of retention would have kept of whole programs, and what would have been faulted in again."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from benchmarks.programs import NAMES
from benchmarks.retention.flows import Flow, flows
from benchmarks.retention.rules import SLACK, Fixed, Learned
from benchmarks.retention.simulation import Figures, simulate
from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.rounds import Call, Worker
from firsttouch.tools.measuring.sizes import MIB
from firsttouch.tools.measuring.statistics import Verdict

RULES: tuple[Callable[[], Fixed], ...] = (
    lambda: Fixed("a tenth", 0.1),
    lambda: Fixed("a quarter", 0.25),
    lambda: Fixed("a whole", 1.0),
    lambda: Fixed("1 s", float("inf")),
    lambda: Fixed("10 s", float("inf"), 10.0),
    lambda: Learned("learned", 0.1),
)
AGAIN, HELD = 0.05, 1.35


def trace(program: str) -> list[Flow]:
    """Record a program in a process of its own."""
    with tempfile.TemporaryDirectory() as folder, Worker(NUMPY) as worker:
        file = Path(folder) / "t.ft"
        worker.ask(Call("benchmarks.tasks.retention", "measure", {"program": program, "file": str(file)}))
        return list(flows(file.read_bytes()))


def run(quick: bool) -> Section:
    """Record every program once, and simulate every rule on its trace."""
    section = Section(
        "retention",
        "How much idle memory to keep, and how long: rules on recorded traces",
        f"with the rule of the pool at most {AGAIN:.0%} of what a program takes is faulted in again, and at most "
        f"{HELD:g} times its peak is held.",
    )
    names = [make().name for make in RULES]
    again = Table("**MiB faulted in again**", ["program", "MiB taken", *names])
    idle = Table("**MiB idle: mean over time, and peak**", ["program", "peak MiB used", *names])
    most: dict[str, tuple[float, float]] = {}
    for program in ("multigrid",) if quick else NAMES:
        given = trace(program)
        found = {rule.name: simulate(given, rule) for rule in (make() for make in RULES)}
        section.raw[program] = {name: asdict(figures) for name, figures in found.items()}
        learned = found["learned"]
        again.rows.append([program, _mib(learned.taken), *(_mib(figures.again) for figures in found.values())])
        idle.rows.append([program, _mib(learned.peak_active), *map(_idle, found.values())])
        held = (learned.peak_held - SLACK) / learned.peak_active
        most[program] = learned.again / learned.taken, held
    section.tables += [again, idle]
    for what, bar, values in (
        ("faulted in again", AGAIN, {name: pair[0] for name, pair in most.items()}),
        ("held, as a multiple of the peak", HELD, {name: pair[1] for name, pair in most.items()}),
    ):
        worst = max(values, key=lambda name: values[name])
        outcome = "passed" if values[worst] <= bar else "failed"
        section.verdicts.append(Verdict(f"{what}: at most {bar:g}", f"{values[worst]:.3f} ({worst})", outcome))
    section.notes.append(
        "*a tenth*, *a quarter*, *a whole*: as much may be held beyond the peak, for a second; *1 s*, *10 s*: however "
        "much, for so long; *learned*: the pool's own rule. Every rule but the last two has 2 MiB more."
    )
    section.notes.append(
        "Counts of bytes. Spans are found, split, joined and purged as in the pool's heap, without coloring and the "
        "last few spans that each processor keeps apart. The figures follow from the trace alone; only the times in it "
        "are this machine's."
    )
    return section


def _mib(size: float) -> str:
    return f"{size / MIB:,.0f}"


def _idle(figures: Figures) -> str:
    return f"{_mib(figures.idle)}, {_mib(figures.peak_idle)}"
