"""Options for every run: from the file of the user and the variable, below those of the command line."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import Start

Write = Callable[[str, str], Path]

SAY = """
import numpy as np
import firsttouch as ft
print(ft.get_allocator(np.ones(1 << 20)))
"""
FILE = ".config/firsttouch/run"


@pytest.mark.parametrize(
    ("file", "variable", "line", "served"),
    [
        ("--decay 7 # seconds\n--max-idle '1 GiB'", "", [], "pool(max_idle='1 GiB', decay=7.0)"),
        ("--decay 7", "--decay=8", [], "decay=8.0"),
        ("--decay 7", "--decay=8", ["--decay", "9"], "decay=9.0"),
        ("--decay 7", "--allocator 'guarded()'", [], "guarded("),
        ("--allocator 'guarded()'", "", ["--decay", "9"], "decay=9.0"),
        ("--limit 1GiB --threshold 64KiB", "", [], "limited("),
    ],
)
def test_the_last_place_counts(
    firsttouch: Start, write: Write, tmp_path: Path, file: str, variable: str, line: list[str], served: str
) -> None:
    write(FILE, file)
    there = {"HOME": str(tmp_path), "FIRSTTOUCH_OPTIONS": variable}
    done = firsttouch("run", "-q", *line, "-c", SAY, environment=there)
    assert (done.stderr, served in done.stdout) == ("", True), done


@pytest.mark.parametrize(
    ("variable", "said"),
    [
        ("--dekay 7", "the variable FIRSTTOUCH_OPTIONS: only options of firsttouch run may stand there, not --dekay 7"),
        ("script.py", "the variable FIRSTTOUCH_OPTIONS: only options of firsttouch run may stand there, not script.py"),
        ("--json 'a", "the variable FIRSTTOUCH_OPTIONS: No closing quotation"),
        ("--decay soon", "--decay: 'soon' is not a duration"),
    ],
)
def test_what_is_wrong_is_named(firsttouch: Start, variable: str, said: str) -> None:
    done = firsttouch("run", "-c", "print('ran')", environment={"FIRSTTOUCH_OPTIONS": variable})
    assert (done.returncode, done.stdout, said in done.stderr) == (2, "", True), done


def test_a_program_in_another_language_gets_what_it_can_obey(firsttouch: Start) -> None:
    options = {"FIRSTTOUCH_OPTIONS": "-q --lines --limit 1GiB --allocator mimalloc --json out.json"}
    done = firsttouch("run", shutil.which("true"), environment=options)
    assert (done.returncode, done.stderr) == (0, "")


def test_page(firsttouch: Start, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    code = "import numpy as np, sys\nfor _ in range(9): np.ones(1 << 20)\nsys.exit(3)"
    done = firsttouch("run", "--html", "page.html", "--json", "report.json", "-c", code)
    report = json.loads((tmp_path / "report.json").read_text())
    page = (tmp_path / "page.html").read_text()
    assert done.returncode == 3
    assert "large blocks" in done.stderr
    for name, value in report["rows"].items():
        assert f"<td>{name}</td><td>{value}</td>" in page
    assert report["conclusion"] in page


def test_page_of_a_program_in_another_language(firsttouch: Start, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    done = firsttouch("run", "-q", "--html", "page.html", shutil.which("true"))
    assert (done.returncode, done.stderr) == (0, "")
    assert "<td>resident</td>" in (tmp_path / "page.html").read_text()


def test_no_page_of_what_left_no_report(firsttouch: Start, tmp_path: Path) -> None:
    pytest.importorskip("jinja2")
    done = firsttouch("run", "--html", "page.html", "-c", "import os; os._exit(0)")
    assert done.returncode == 0
    assert done.stderr.startswith("firsttouch: no page: the program left no report")
    refused = firsttouch("run", "--html", "page.html", "--decay", "soon", "-c", "1")
    assert (refused.returncode, refused.stderr.count("\n")) == (2, 1)
    assert list(tmp_path.iterdir()) == []
