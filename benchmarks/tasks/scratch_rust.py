"""The Rust program that times the arena and bumpalo: builds it, runs it, parses its output."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

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
