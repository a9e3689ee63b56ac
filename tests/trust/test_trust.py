"""A short share of the random tester, some seeds that are always the same, and of the fuzzing."""

import subprocess
import sys

import pytest

from tests.trust.campaign import ROOT, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the steps fork, and limit the address space")


@pytest.mark.parametrize("seed", range(6))
def test_random_programs(seed: int) -> None:
    assert run(seed, 400).failure is None


def test_parsers_of_python_take_anything() -> None:
    """This fuzzing needs neither coverage nor a nightly toolchain."""
    command = [sys.executable, str(ROOT / "fuzz" / "python_side.py"), "-max_total_time=3", "-seed=1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-3000:]
