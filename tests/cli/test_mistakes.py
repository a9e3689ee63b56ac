"""Errors are reported in one line that names the cause."""

from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Start

Write = Callable[[str, str], Path]

#: The command line where NumPy is not installed.
WITHOUT = """
import sys
sys.modules["numpy"] = None
from _firsttouch_start import main
raise SystemExit(main())
"""


def test_a_run_that_ends_before_it_began(firsttouch: Start) -> None:
    done = firsttouch("compare", "--timeout", "0.001", "-c", "pass")
    said = "firsttouch: compare: the program did not end within 0.001 s (--timeout); no comparison was made\n"
    assert (done.returncode, done.stderr) == (1, said)


@pytest.mark.parametrize("words", [["compare", "-c", "pass"], ["bench", "touch", "--quick"]])
def test_without_numpy(python: Start, words: list[str]) -> None:
    done = python("-c", WITHOUT, *words)
    assert done.returncode == 2
    assert done.stderr == f"firsttouch: {words[0]} needs numpy: python -m pip install numpy\n"
