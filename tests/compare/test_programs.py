"""Real programs: one with many page faults, one that only computes, one that an allocator slows down."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import Compare

Write = Callable[[str, str], Path]

# The second array ends at the heap's top: glibc gives it back at every turn, and all its pages are faulted in again.
FAULTS = """\
import numpy as np
for _ in range(200):
    a = np.empty(3_900_000, np.uint8)
    b = np.empty(3_900_000, np.uint8)
    a[::4096] = b[::4096] = 1
    del a, b
print("done")
"""

COMPUTES = """\
import numpy as np
a = np.ones((500, 500))
for _ in range(5):
    a @ a
"""

ASKS = """\
import numpy as np
for _ in range(30_000):
    np.empty(20_000)[0] = 1
"""


def advice(text: str, kind: str, name: str) -> list[str]:
    """Who is faster, or slower; where this machine is too busy to tell two equal runs apart, nothing was shown."""
    found = json.loads(text)
    noise = found["noise"]
    named: list[str] = found["advice"][kind]
    if name not in named and noise["high"] / noise["low"] > 2:
        pytest.skip(f"this machine is too busy: the default against itself gave {noise}")
    return named


def row(found: dict[str, Any], name: str) -> dict[str, Any]:
    rows: list[dict[str, Any]] = found["contenders"]
    return next(row for row in rows if row["name"] == name)


def test_the_gain_of_a_program_that_faults_is_found(compare: Compare, write: Write, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    write("faults.py", FAULTS)
    done = compare("--runs", 5, "--json", "out.json", "--html", "out.html", "--plot", "out.png", "faults.py", "--quick")
    assert done.returncode == 0, done.stderr
    assert "One run of faults.py --quick takes " in done.stderr  # what went to the program is seen
    assert "to be compared: the default (twice), pool() and tuned glibc." in done.stderr
    text = (tmp_path / "out.json").read_text()
    found = json.loads(text)
    for name in ("the default", "the same again", "pool()", "tuned glibc"):
        assert len(row(found, name)["runs"]) == 5
        assert name in done.stdout
    faults = {name: row(found, name)["runs"][0]["minor_faults"] for name in ("the default", "pool()")}
    assert faults["pool()"] < faults["the default"] / 5
    assert row(found, "pool()")["remark"] is None
    page = (tmp_path / "out.html").read_text()
    assert page.count("<svg") == 2
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    assert "pool()" in advice(text, "faster", "pool()")
    assert "as fast as the default" in done.stdout


def test_a_program_that_computes_gains_nothing(compare: Compare, write: Write) -> None:
    write("computes.py", COMPUTES)
    done = compare("--runs", 5, "-q", "computes.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(("No difference", "No certain difference"))
    assert done.stderr == ""


def test_an_allocator_that_slows_a_program_down_is_named(compare: Compare, write: Write) -> None:
    write("asks.py", ASKS)
    done = compare("--runs", 5, "--allocator", "guarded()", "--json", "-", "asks.py")
    assert done.returncode == 0, done.stderr
    assert "guarded()" in advice(done.stdout, "slower", "guarded()")
    assert "guarded()" in json.loads(done.stdout)["advice"]["sentences"][-1]
