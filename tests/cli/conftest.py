"""Starts programs in processes of their own, once with python and once with `firsttouch run`."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.programs import Finished
from tests.programs import environment as inherited

Start = Callable[..., Finished]
Write = Callable[[str, str], Path]


def clean_environment(**more: str) -> dict[str, str]:
    """The environment, without what the test run inherited and without the folder of the tests on the path."""
    return {name: value for name, value in inherited().items() if name != "PYTHONPATH"} | more


def start(*words: object, environment: dict[str, str] | None = None, **options: Any) -> Finished:
    """Run this Python with these words; give back what it wrote and its exit status."""
    options = {"capture_output": True, "text": True, "timeout": 120, "check": False} | options
    return subprocess.run([sys.executable, *map(str, words)], env=clean_environment(**(environment or {})), **options)


@pytest.fixture
def python(tmp_path: Path) -> Start:
    """Plain python, in a fresh directory."""

    def run(*words: object, **options: Any) -> Finished:
        return start(*words, **({"cwd": tmp_path} | options))

    return run


@pytest.fixture
def firsttouch(python: Start) -> Start:
    """`firsttouch ...`, in the same directory."""

    def run(*words: object, before: tuple[str, ...] = (), **options: Any) -> Finished:
        return python(*before, "-m", "firsttouch", *words, **options)

    return run


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Put a file into the directory that programs run in."""

    def put(name: str, text: str) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return put
