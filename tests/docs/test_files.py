"""The page on files names every key of the reports, of each command that writes JSON."""

import json
import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from firsttouch.tools import preload
from firsttouch.tools.compare.comparison import Outcome, Row
from firsttouch.tools.compare.report import data
from firsttouch.tools.compare.runs import Run
from firsttouch.tools.measuring.contenders import Contender
from tests import programs

PAGE = (Path(__file__).parents[2] / "docs/reference/files.md").read_text("utf-8")


def section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


def keys(text: str) -> set[str]:
    """The keys in the first column of a table."""
    return set(re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (.*?) \|", text, re.MULTILINE))))


def report(file: Path, *words: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "firsttouch", *words]
    file.unlink(missing_ok=True)
    subprocess.run(command, env=programs.environment(), cwd=file.parent, capture_output=True, check=True, timeout=120)
    found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    return found


def test_run(tmp_path: Path) -> None:
    found = report(tmp_path / "f", "run", "--json", "f", "-c", "import numpy")
    assert keys(section("The report of `firsttouch run --json FILE`")) == set(found)


@pytest.mark.skipif(preload.missing() is not None, reason="the library for other programs is not built")
def test_run_of_another_program(tmp_path: Path) -> None:
    text = section("The report of `firsttouch run --json FILE`")
    missing = set(re.findall(r"`(\w+)`", text.partition("these keys except")[2].partition(";")[0]))
    assert missing
    assert keys(text) - missing == set(report(tmp_path / "f", "run", "--json", "f", "true"))


def test_compare() -> None:
    text = section("The figures of `firsttouch compare --json FILE`")
    row = Row(Contender("one"), [Run(1.0, 0.0, 0.0, 0, 0, 0, 0)])
    found = data(Outcome([row, row], 1, "", 1.0, []))
    assert keys(text) == {"command", "machine", "notes", "absent", *found}
    inner = {*found["contenders"][0], *found["advice"], *found["noise"], *(field.name for field in fields(Run))}
    assert {name for name in inner if f"`{name}`" not in text} == set()


def test_the_other_commands(tmp_path: Path) -> None:
    text = section("The other commands")
    report(tmp_path / "f", "trace", "--summary", "-o", "t", "--json", "f", "-c", "import numpy; numpy.ones(10**5)")
    for words in ("trace --summary --json f t", "replay --json f t", "info --json f", "advise --json f -c"):
        more = ["import numpy; numpy.ones(10**5)"] if words.endswith("-c") else []
        found = report(tmp_path / "f", *words.split(), *more)
        name = words.partition(" f")[0]
        (row,) = re.findall(rf"^\| `{name}` \| (.*) \|", text, re.MULTILINE)
        assert {key for key in re.findall(r"`(\w+)`", row) if key not in found} == set(), name
