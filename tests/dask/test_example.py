"""The example runs, in a small size, and prints the expected output."""

import re
import subprocess
import sys

import pytest

from tests.programs import ROOT, environment

pytest.importorskip("distributed", reason="Dask's distributed is not installed")

EXPECTED = (
    "730 x 8 x 16 days and cells, 1 MiB, seconds per round:\n"
    "  NumPy's own memory: #\n"
    "         ArrayMemory: #\n"
    "the same hot days, #%: True\n"
)


def test_the_climate_example() -> None:
    command = [sys.executable, str(ROOT / "examples" / "climate_on_dask.py"), "--years", "2", "--cells", "16"]
    finished = subprocess.run(
        [*command, "--rounds", "1"], env=environment(), capture_output=True, text=True, timeout=120, check=False
    )
    assert finished.returncode == 0, finished.stderr
    assert re.sub(r"\d+\.\d+", "#", finished.stdout) == EXPECTED
