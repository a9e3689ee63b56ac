"""`firsttouch compare`, started as a user would, in an empty directory."""

import functools
import subprocess

import pytest

from tests.cli.conftest import Start, Write, firsttouch, python, write

__all__ = ["Write", "firsttouch", "python", "write"]

Compare = Start


@pytest.fixture
def compare(firsttouch: Start) -> Compare:
    pytest.importorskip("rich", reason="firsttouch compare prints by rich")
    # Modules compiled anew in every run would be counted as time of the program.
    compiled = {"PYTHONDONTWRITEBYTECODE": ""}
    return functools.partial(firsttouch, "compare", stdin=subprocess.DEVNULL, env=compiled)
