"""Runs programs in processes of their own: their output, and that they end well and silently."""

import json
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]

Finished = subprocess.CompletedProcess[str]

#: Whatever the test run itself inherited must not decide what a program sees.
_FOREIGN = (
    *("FIRSTTOUCH_", "MALLOC_", "PYTHON", "GLIBC_", "LD_PRELOAD", "OMP_", "OPENBLAS_"),
    *("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR", "PYTEST_"),
    *("OMPI_", "PMI_", "PMIX_", "MV2_", "SLURM_"),
)

#: What programs begin with. One thread of BLAS, so that only the program's own threads are there.
_PROLOGUE = "import numpy as np\nimport firsttouch as ft\nfrom tests import probe\n"


def environment(**more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(_FOREIGN)}
    own = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1", "OPENBLAS_NUM_THREADS": "1"}
    return kept | own | more


def execute(*command: object, env: dict[str, str] | None = None, **options: Any) -> Finished:
    """Run a command; how it ended and what it wrote."""
    options = {"capture_output": True, "text": True, "timeout": 280, "check": False} | options
    return subprocess.run([str(word) for word in command], env=environment(**(env or {})), **options)


def compiled(path: Path, *words: object, compiler: str = "cc") -> Path:
    """A program or library that a compiler makes without a word; the test is skipped where there is none."""
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    done = execute(compiler, "-Wall", *words, "-o", path)
    if done.returncode and any("-fsanitize" in str(word) for word in words):
        pytest.skip(f"a sanitizer is missing: {done.stderr}")
    assert (done.returncode, done.stderr) == (0, ""), f"{done.args}\n{done.stderr}"
    return path


@contextmanager
def running(
    *command: object, ready: str | None = None, env: dict[str, str] | None = None, **options: Any
) -> Iterator[subprocess.Popen[str]]:
    """A command that goes on meanwhile, from when it has printed the line `ready`; at the end it is killed."""
    options = {"stdout": subprocess.PIPE, "text": True} | options
    with subprocess.Popen([str(word) for word in command], env=environment(**(env or {})), **options) as process:
        try:
            if ready is not None:
                assert process.stdout is not None
                assert process.stdout.readline() == f"{ready}\n"
            yield process
        finally:
            process.kill()


def start(program: str, *flags: str, prologue: str = _PROLOGUE, **options: Any) -> Finished:
    """Run a program."""
    return execute(sys.executable, *flags, "-c", prologue + textwrap.dedent(program), **options)


def quiet(finished: Finished) -> str:
    """What a program printed, provided that it ended with 0 and wrote no word on standard error."""
    assert (finished.returncode, finished.stderr) == (0, ""), (
        f"status {finished.returncode}\n{finished.stdout[-2000:]}\n{finished.stderr[-4000:]}"
    )
    return finished.stdout


def run(program: str, *flags: str, **options: Any) -> str:
    """What a program prints that must end well and quietly."""
    return quiet(start(program, *flags, **options))


def ask(program: str, *flags: str, **options: Any) -> Any:
    """The same for a program whose last line is JSON: that value."""
    return json.loads(run(program, *flags, **options).splitlines()[-1])
