"""A short share of the random tester: some seeds that are always the same."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.trust.campaign import ROOT, run
from tests.trust.program import LENGTH, planned
from tests.trust.steps import STEPS


@pytest.mark.skipif(sys.platform != "linux", reason="the steps fork, and limit the address space")
@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed: int) -> None:
    assert run(seed, 400).failure is None


@pytest.mark.skipif(sys.platform != "linux", reason="the steps fork, and limit the address space")
def test_a_program_ends_at_its_next_step_when_the_time_is_up() -> None:
    ended = run(0, LENGTH, until=time.monotonic())
    assert ended.failure is None
    assert 0 < ended.steps < 1000


@pytest.mark.skipif(sys.platform != "linux", reason="the steps fork, and limit the address space")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_campaign_that_is_interrupted_ends_with_its_programs(number: signal.Signals) -> None:
    began = time.monotonic()
    command = [sys.executable, "-m", "tests.trust", "--seconds", "100"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as campaign:
        threads = Path(f"/proc/{campaign.pid}/task")
        while not (programs := {one for each in threads.glob("*/children") for one in each.read_text().split()}):
            time.sleep(0.05)
        campaign.send_signal(number)
        assert campaign.wait() != 0
        assert time.monotonic() - began < 50
        assert not [one for one in programs if Path("/proc", one).exists()]


def test_every_step_comes_several_times_in_a_program() -> None:
    drawn = [step for _, step, _ in planned(1, LENGTH)]
    assert min(drawn.count(step) for step in set(STEPS)) >= 2


def test_parsers_of_python_take_anything() -> None:
    """A short share of the fuzzing, which needs neither coverage nor a nightly toolchain."""
    command = [sys.executable, str(ROOT / "fuzz" / "python_side.py"), "-max_total_time=3", "-seed=1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-3000:]
