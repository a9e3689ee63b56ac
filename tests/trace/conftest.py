"""Programs traced in processes of their own."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Start, firsttouch, python, write
from tests.programs import Finished

__all__ = ["firsttouch", "python", "write"]

Facts = dict[str, Any]
Trace = Callable[..., tuple[Facts, Finished]]


@pytest.fixture
def trace(firsttouch: Start, tmp_path: Path) -> Trace:
    """Trace a piece of code into t.ft; what the file says, and how the program ended."""

    def run(code: str, *options: str, **more: Any) -> tuple[Facts, Finished]:
        done = firsttouch("trace", "-o", "t.ft", *options, "-c", code, **more)
        return json.loads((tmp_path / "t.ft").read_text()), done

    return run
