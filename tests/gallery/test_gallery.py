"""The gallery: its pages are what the record says, its programs run, and `advise` and `compare` agree about them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("matplotlib")

from benchmarks.gallery.__main__ import RECORDED, pages
from benchmarks.gallery.catalogue import FOLDER, ROOT, Program, catalogue
from benchmarks.gallery.facts import Figures
from benchmarks.gallery.record import RunError, on_terminal

PROGRAMS = catalogue()
NAMES = [program.name for program in PROGRAMS]
MODULES = {"scikit-learn": "sklearn", "scikit-image": "skimage"}


@pytest.fixture(scope="module")
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(RECORDED.read_text("utf-8"))
    return found


@pytest.fixture(scope="module")
def rendered(recorded: dict[str, Any]) -> dict[Path, str]:
    return pages(recorded)


def test_every_program_is_recorded_and_has_a_page(recorded: dict[str, Any], rendered: dict[Path, str]) -> None:
    assert set(recorded["programs"]) == set(NAMES)
    assert {path for path in rendered if path.suffix == ".md"} == set(FOLDER.glob("*.md"))
    assert {path for path in rendered if path.suffix == ".svg"} == set(FOLDER.glob("pictures/*"))
    files = {program.path for program in PROGRAMS}
    assert set((FOLDER / "programs").glob("*.py")) <= files


def test_the_pages_are_what_the_renderer_makes_of_the_record(
    recorded: dict[str, Any], rendered: dict[Path, str]
) -> None:
    same = recorded["matplotlib"] == version("matplotlib")  # others draw the same picture in other words
    for path, text in rendered.items():
        if path.suffix == ".md" or same:
            assert path.read_text("utf-8") == text, f"{path.name} was edited, or not rendered again"


def test_no_page_names_the_folders_of_the_machine(rendered: dict[Path, str]) -> None:
    for path, text in {**rendered, RECORDED: RECORDED.read_text("utf-8")}.items():
        assert str(ROOT) not in text, path
        assert "site-packages" not in text, path
        assert sys.prefix not in text or sys.prefix == "/usr", path


@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_a_program_runs_and_prints_the_same_twice(program: Program) -> None:
    for package in program.packages:
        pytest.importorskip(MODULES.get(package, package))
    command = [sys.executable, "-W", "error::RuntimeWarning", str(program.path), program.small]
    said = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert said[0]
    assert said[0] == said[1]


@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_a_program_is_short_and_knows_nothing_of_us(program: Program) -> None:
    text = program.path.read_text("utf-8")
    assert len(text.splitlines()) < 80
    assert text.startswith('"""')
    assert "firsttouch" not in text


@pytest.mark.parametrize("program", PROGRAMS, ids=NAMES)
def test_advice_and_measurement_agree(program: Program, recorded: dict[str, Any]) -> None:
    assert Figures(recorded["programs"][program.name]).contradiction is None


def test_three_programs_gain_nothing(recorded: dict[str, Any]) -> None:
    found = [Figures(record) for record in recorded["programs"].values()]
    assert sum(figures.measured != "faster" and figures.advised != "gain" for figures in found) >= 3
    assert sum(figures.advised == "nothing" for figures in found) >= 2
    assert any(figures.measured == "faster" for figures in found)


def made(share: float, speedups: list[float], verdict: str = "") -> Figures:
    """A record with the given estimate, speed-ups of the pool by round, and verdict of compare."""
    rows = [("the default", [1.0] * len(speedups)), ("the same again", [1.0] * len(speedups))]
    rows.append(("pool()", [1.0 / speedup for speedup in speedups]))
    run = {"system": 0.0, "minor_faults": 1, "major_faults": 0, "peak_bytes": 1, "status": 0}
    middle = sorted(speedups)[len(speedups) // 2]
    contenders = [
        {
            "name": name,
            "environment": {},
            "firsttouch": name == "pool()",
            "failure": None,
            "remark": None,
            "runs": [{"wall": seconds, "user": seconds, **run} for seconds in times],
            "speedup": {"value": middle, "low": min(speedups), "high": max(speedups)},
        }
        for name, times in rows
    ]
    advice = {word: ["pool()"] if verdict == word else [] for word in ("faster", "slower")}
    noise = {"value": 1.0, "low": 0.99, "high": 1.01}
    compare = {"rounds": len(speedups), "started": "", "seconds": 1.0, "cautions": [], "noise": noise}
    compare |= {"advice": advice, "contenders": contenders}
    return Figures({"advise": {"gain_share": share}, "compare": compare})


def test_a_contradiction_is_seen() -> None:
    assert made(0.20, [1.2] * 7, "faster").contradiction is None
    assert made(0.001, [1.0] * 7).contradiction is None
    assert made(0.03, [1.3] * 7, "faster").contradiction is None
    assert made(0.20, [0.97, 1.0, 1.1, 1.0, 1.1, 1.0, 1.0]).contradiction is None
    assert "measured a gain" in (made(0.001, [1.2] * 7, "faster").contradiction or "")
    assert "excludes one" in (made(0.20, [0.95] * 7).contradiction or "")
    assert "excludes one" in (made(0.20, [0.9] * 7, "slower").contradiction or "")


def test_a_command_prints_as_on_a_terminal(tmp_path: Path) -> None:
    code = "import os, sys; print(os.get_terminal_size().columns, sys.stdout.isatty()); print('x', file=sys.stderr)"
    assert on_terminal([sys.executable, "-c", code], tmp_path) == "80 True\nx"
    with pytest.raises(RunError, match=r"ended with status 3:\nno"):
        on_terminal([sys.executable, "-c", "print('no'); raise SystemExit(3)"], tmp_path)


def test_an_unknown_program_is_named_with_those_there_are() -> None:
    command = [sys.executable, "-m", "benchmarks.gallery", "run", "mandelbort"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ})
    assert done.returncode == 2
    assert "'mandelbort'" in done.stderr
    assert all(name in done.stderr for name in NAMES)
