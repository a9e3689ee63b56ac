"""The programs of the gallery run, print the same twice, and know nothing of us."""

import subprocess
import sys

import pytest

from benchmarks.gallery import PROGRAMS, Program


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_prints_the_same_twice(program: Program) -> None:
    for package in program.packages:
        pytest.importorskip(package)
    assert "firsttouch" not in program.path.read_text("utf-8")
    command = [sys.executable, "-W", "error::RuntimeWarning", str(program.path), program.small]
    said = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert said[0]
    assert said[0] == said[1]
