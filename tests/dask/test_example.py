"""The example runs, in a small size, and prints the expected output."""

import re
import sys

import pytest

from tests.programs import ROOT, execute

pytest.importorskip("distributed", reason="Dask's distributed is not installed")

EXPECTED = (
    "730 x 8 x 16 days and cells, 1 MiB, seconds per round:\n"
    "  NumPy's own memory: #\n"
    "         ArrayMemory: #\n"
    "the same hot days, #%: True\n"
)


def test_the_climate_example() -> None:
    sizes = ["--years", "2", "--cells", "16", "--rounds", "1"]
    finished = execute(sys.executable, ROOT / "examples" / "climate_on_dask.py", *sizes)
    assert finished.returncode == 0, finished.stderr
    assert re.sub(r"\d+\.\d+", "#", finished.stdout) == EXPECTED
