"""The command itself, in quick mode."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks.experiments import NAMES
from benchmarks.experiments.memory import PROGRAMS
from benchmarks.experiments.scratch_rust import build, measure
from benchmarks.experiments.workloads import WORKLOADS
from benchmarks.experiments.workloads import measure as run_workload
from benchmarks.kernels import NAMES as KERNELS
from benchmarks.workers import Worker
from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.processes import Call

ROOT = Path(__file__).parents[2]


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "benchmarks", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_quick_run_keeps_its_section_and_its_raw_figures(tmp_path: Path) -> None:
    done = command("startup", "--quick", "--results", str(tmp_path))
    assert done.returncode == 0, done.stderr
    text = (tmp_path / "startup.md").read_text()
    assert "import adds at most 15 ms" in text
    assert "A quick run" in text
    assert len(json.loads((tmp_path / "startup.json").read_text())["install"]) == 3


def test_a_misspelt_experiment_is_named_with_those_there_are() -> None:
    done = command("strtup")
    assert done.returncode == 2
    assert "'strtup'" in done.stderr
    assert all(name in done.stderr for name in NAMES)


def test_the_rust_program_answers_for_each_contender() -> None:
    program = build()
    if program is None:
        pytest.skip("no Rust toolchain, or no bumpalo")
    times = measure(program, 2, 1, "scope")
    assert [list(contenders) for contenders in times.values()] == [["arena", "again", "bumpalo"]]
    assert all(len(rounds) == 2 and min(rounds) > 0 for rounds in times["240 bytes, scope"].values())


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_kernel_gives_a_number(kernel: str) -> None:
    assert np.isfinite(importlib.import_module(f"benchmarks.kernels.{kernel}").run())


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_reports_its_peak(program: str) -> None:
    call = Call("benchmarks.experiments.memory", "measure", {"program": program, "wait": 0.01})
    with Worker(NUMPY) as worker:  # a fresh process: here its memory may be there already
        reply = worker.ask(call)
    assert reply["peak"] > reply["left"]


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_part_of_each_workload_runs(workload: str) -> None:
    assert run_workload(workload, 0.01, pooled=False)["seconds"] > 0
