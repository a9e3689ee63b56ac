"""Installs each wheel, and the sdist, into a fresh environment and runs the quick tests there."""

from __future__ import annotations

import os
import platform
import sys
from typing import TYPE_CHECKING

from wheels.steps import ROOT, FailedError, find_python, fresh_environment, pip_install, run, say

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def try_each(found: Sequence[Path]) -> None:
    """Try them one after the other."""
    for path in found:
        python = _python_for(path.name)
        if python is None:
            continue
        say(f"== the quick tests with {path.name} on {python}")
        inside = fresh_environment(path.stem.partition("-")[2], python, "test")
        pip_install(inside, "--no-deps", path)  # of the sdist with build isolation: pip fetches maturin
        say(_quick_tests(inside))


def _python_for(name: str) -> Path | None:
    """Return a Python that can load a wheel; None, after saying so, if there is none here."""
    if name.endswith("aarch64.whl") and platform.machine() != "aarch64":
        say(f"   {name} is not tried: this machine is {platform.machine()}")
        return None
    if "musllinux" in name:
        given = os.environ.get("MUSL_PYTHON")
        if given is None:
            say(f"   {name} is not tried: MUSL_PYTHON names no Python that runs on musl")
        return find_python_given(given) if given else None
    return find_python("--free-threaded") if "t-manylinux" in name else find_python("--first")


def find_python_given(path: str) -> Path:
    """Return a Python that a variable names, which must start."""
    from pathlib import Path

    run([path, "-c", "import venv, ensurepip"], f"start MUSL_PYTHON={path}")
    return Path(path)


def _quick_tests(inside: Path) -> str:
    """Return the last line of pytest."""
    path = f"{inside.parent}{os.pathsep}{os.environ['PATH']}"
    command = [inside, "-m", "pytest", "-q", "-n", "auto", "--dist", "loadfile", "-m", "quick"]
    more = os.environ.get("PYTEST_ARGS", "").split()
    try:
        said = run([*command, "--ignore", "tests/numpy_suite", *more], "quick tests", environment={"PATH": path})
    except FailedError as error:
        print(error, file=sys.stderr)
        raise FailedError(f"the quick tests fail in {inside.parents[1].relative_to(ROOT)}") from None
    return f"   {said.strip().splitlines()[-1]}"
