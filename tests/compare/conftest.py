"""`firsttouch compare`, started as a user would, in an empty directory."""

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
