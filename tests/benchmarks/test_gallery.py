"""The programs of the gallery run, and know nothing of us; `compare` finds output that differs."""

import subprocess
import sys

import pytest

from benchmarks.gallery import PROGRAMS, Program


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_prints_something(program: Program) -> None:
    for package in program.packages:
        pytest.importorskip(package)
    assert "firsttouch" not in program.path.read_text("utf-8")
    command = [sys.executable, "-W", "error::RuntimeWarning", str(program.path), program.small]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout
