"""`firsttouch compare`, started as a user would, in an empty directory."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import FIRSTTOUCH, Write, write
from tests.programs import Finished, execute

__all__ = ["Write", "write"]

Compare = Callable[..., Finished]


@pytest.fixture
def compare(tmp_path: Path) -> Compare:
    pytest.importorskip("rich", reason="firsttouch compare prints by rich")

    def run(*words: object, **options: Any) -> Finished:
        # Modules compiled anew in every run would be counted as time of the program.
        settings: dict[str, Any] = {"stdin": subprocess.DEVNULL, "timeout": 200, "env": {"PYTHONDONTWRITEBYTECODE": ""}}
        return execute(*FIRSTTOUCH, "compare", *words, cwd=tmp_path, **settings | options)

    return run


def alive(marker: str) -> bool:
    """Whether any process has the word on its command line."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if int(folder.name) != os.getpid() and marker.encode() in words:
            return True
    return False
