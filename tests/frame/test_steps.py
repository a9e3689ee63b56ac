"""The steps of `make check` and its like: a failure is named and ends all, and silence is broken."""

import importlib.machinery
import importlib.util
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / ".ci" / "steps"


@pytest.fixture
def steps() -> ModuleType:
    loader = importlib.machinery.SourceFileLoader("steps", str(FILE))
    spec = importlib.util.spec_from_loader("steps", loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def said(name: str, command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, FILE, "--step", name, command], capture_output=True, text=True, check=False)


def test_a_failed_step_is_named() -> None:
    done = said("the first", "echo one; exit 7")
    assert done.returncode == 1
    assert "one\n" in done.stdout
    assert re.search(r'\*\*\* The step "the first" failed after \d+ s: echo one; exit 7', done.stdout)


def test_a_step_ends_with_its_command_and_not_with_what_that_left_running() -> None:
    done = said("the second", "sleep 600 & echo left: $!; sleep 0.5")  # it ends after what it prints was read
    os.kill(int(done.stdout.split("left: ")[1].split()[0]), signal.SIGKILL)  # fails if it has ended
    assert done.returncode == 0


def test_a_silent_step_says_that_it_runs(
    steps: ModuleType, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "QUIET_S", 0.2)
    assert steps.shell("the third", "printf dots; sleep 0.5; exit 3") == 3
    assert re.search(r"dots\n   the third: \d+ s so far\n", capfd.readouterr().out)
