"""Programs traced in processes of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from firsttouch import _firsttouch
from tests.cli.conftest import Finished, Start, firsttouch, python, write

__all__ = ["firsttouch", "python", "write"]

Survey = dict[str, Any]
Trace = Callable[..., tuple[Survey, Finished]]


@pytest.fixture
def trace(firsttouch: Start, tmp_path: Path) -> Trace:
    """Trace a piece of code into t.ft; what the file says, and how the program ended."""

    def run(code: str, *options: str, **more: Any) -> tuple[Survey, Finished]:
        done = firsttouch("trace", "-o", "t.ft", *options, "-c", code, **more)
        return _firsttouch.trace_survey(str(tmp_path / "t.ft"), True), done

    return run


@pytest.fixture
def replay(firsttouch: Start) -> Callable[..., list[dict[str, Any]]]:
    """Play t.ft against some allocators; what the command found."""

    def run(*allocators: str, options: tuple[str, ...] = ()) -> list[dict[str, Any]]:
        words = [word for allocator in allocators for word in ("--allocator", allocator)]
        done = firsttouch("replay", "--json", "-", *words, *options, "t.ft")
        assert done.returncode == 0, done.stderr
        found: list[dict[str, Any]] = json.loads(done.stdout)["replays"]
        return found

    return run
