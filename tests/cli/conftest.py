"""Starts programs in processes of their own, once with python and once with `firsttouch run`."""

import functools
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.programs import Finished, execute

Start = Callable[..., Finished]
Write = Callable[[str, str], Path]
#: What begins a command of ours.
FIRSTTOUCH = (sys.executable, "-m", "firsttouch")


@pytest.fixture
def python(tmp_path: Path) -> Start:
    """Plain python, in a fresh directory."""
    return functools.partial(execute, sys.executable, cwd=tmp_path)


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


def working(folder: Path) -> list[int]:
    """The processes whose current directory is the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").samefile(folder):
                found.append(int(process.name))
        except OSError:
            continue
    return found
