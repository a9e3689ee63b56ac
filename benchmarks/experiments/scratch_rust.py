"""The arena in Rust compared with bumpalo: rewinding, and growth."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np

from benchmarks.measuring import Matrix, Section, Verdict, judge, median
from firsttouch.tools.measuring.report import Table

# ---- What is measured, in a process of its own


ROOT = Path(__file__).parents[2]
CRATE = ROOT / "benchmarks" / "rust"
TARGET = ROOT / "target" / "benchmarks"  # separate from the workspace's, because its dependencies are not the library's

Times = dict[str, dict[str, list[float]]]  # nanoseconds of each round, by case and contender


def build() -> Path | None:
    """Return the program; None without Rust, or if bumpalo is not available."""
    if shutil.which("cargo") is None:
        return None
    command = ["cargo", "build", "--quiet", "--release", "--locked", "--manifest-path", str(CRATE / "Cargo.toml")]
    environment = {**os.environ, "CARGO_TARGET_DIR": str(TARGET)}
    done = subprocess.run(command, env=environment, check=False)
    return TARGET / "release" / "firsttouch-benchmarks" if done.returncode == 0 else None


def measure(program: Path, rounds: int, milliseconds: int, part: str = "") -> Times:
    """Run one process: every case, or those with `part` in their names."""
    command = [str(program), str(rounds), str(milliseconds), part]
    times: Times = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return times


# ---- The experiment


BAR = 1.05
#: The cases of each bar, by the beginning of their names.
ASKED = {"240 bytes in a scope": "240 bytes, scope", "growth": "growth"}


def ratio(runs: list[Times], case: str, of: str, to: str) -> Matrix:
    """Return per-round ratios between two contenders, processes by rounds."""
    numerator: Matrix = np.array([run[case][of] for run in runs], float)
    denominator: Matrix = np.array([run[case][to] for run in runs], float)
    return numerator / denominator


def run(quick: bool) -> Section:
    """Measure every case in several processes."""
    section = Section(
        "scratch_rust",
        "Scratch memory in Rust: the arena and bumpalo",
        f"allocating 240 bytes in a scope takes at most {BAR} times bumpalo's allocate and reset; growth likewise.",
    )
    program = build()
    if program is None:
        section.verdicts.append(Verdict("the arena and bumpalo", "it could not be built here", "not measured"))
        return section
    runs = [measure(program, *((3, 1) if quick else (30, 1))) for _ in range(2 if quick else 4)]
    section.raw["nanoseconds"] = runs
    table = Table("", ["case", "arena", "the other", "arena / other", "arena / arena again"])
    cells: dict[str, Matrix] = {}
    for case, contenders in runs[0].items():
        ours, again, other = contenders
        cells[case] = ratio(runs, case, ours, other)
        times = [f"{np.median([run[case][name] for run in runs]):,.2f} ns" for name in (ours, other)]
        equal = median(ratio(runs, case, ours, again))
        row = [case, times[0], f"{other} {times[1]}", str(median(cells[case])), str(equal)]
        table.rows.append(row)
    section.tables.append(table)
    for words, name in ASKED.items():
        found = {case: cell for case, cell in cells.items() if case.startswith(name)}
        section.verdicts.append(judge(f"{words}: at most {BAR} times", BAR, found))
    section.notes.append("Marks are checked at run time; scopes are checked by the compiler, and cost less.")
    return section
