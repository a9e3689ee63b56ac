"""Existing programs behave the same with the library as without it, on blocks of 16 KiB and more."""

import shutil
import sys
from pathlib import Path

import pytest

from tests.preload.starting import PROGRAMS, start

#: Low, so that the pool serves as much as it can.
SETTINGS = "threshold=16384"


def same(*command: str, cwd: Path | None = None, stdin: str | None = None) -> str:
    """What a command prints, plainly and served."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]}")
    plain = start(*command, served=False, cwd=cwd, input=stdin)
    served = start(*command, settings=SETTINGS, cwd=cwd, input=stdin, timeout=280)
    assert (served.returncode, served.stdout, served.stderr) == (plain.returncode, plain.stdout, plain.stderr)
    assert plain.returncode == 0
    return served.stdout


def test_bash() -> None:
    script = """
        text=$(printf 'x%.0s' {1..20000}); echo ${#text}; echo "${text//x/yz}" | wc -c
        for i in {1..30}; do (echo $i) & done | sort -n | tail -n 1; wait
        trap 'echo ends' EXIT; cat <(echo one) <(echo two)
    """
    assert same("bash", "-c", script).splitlines()[-1] == "ends"


def test_a_compiler(tmp_path: Path) -> None:
    same("g++", "-O1", "-std=c++17", str(PROGRAMS / "containers.cc"), "-o", "program", cwd=tmp_path)
    assert same(str(tmp_path / "program")).split()[2] == "3e+06"


#: Files of Python's own suite whose subject are large blocks, threads and processes.
FILES = ("test_bytes", "test_zlib", "test_array", "test_bz2", "test_mmap", "test_memoryio", "test_fork1", "test_thread")


@pytest.mark.slow
def test_python_s_own_tests() -> None:
    if start(sys.executable, "-c", "import test.test_zlib", served=False).returncode:
        pytest.skip("this Python has no tests")
    plain = start(sys.executable, "-m", "test", "-q", *FILES, served=False, timeout=280)
    if plain.returncode:
        pytest.skip("these tests fail plainly")
    served = start(sys.executable, "-m", "test", "-q", *FILES, settings=SETTINGS, timeout=280)
    assert served.returncode == 0, served.stdout[-3000:] + served.stderr[-3000:]
