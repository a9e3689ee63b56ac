"""BENCHMARKS.md, written as a whole and in parts."""

from pathlib import Path

import pytest

from benchmarks.document import rendered, write
from firsttouch.tools.measuring.picture import Picture
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.statistics import Verdict

MACHINE = {"CPU": "one", "kernel": "two"}
ORDER = ("first", "second")


def section(name: str, figure: str) -> Section:
    table = Table("**A table**", ["size", "a|b"], [("1 MiB", figure)])
    return Section(name, f"The {name}", "a bar", [table], [Verdict("bar", figure, "passed")], ["a note"], how="quick")


def test_a_section_has_what_was_asked_what_was_got_and_the_outcome(tmp_path: Path) -> None:
    write(tmp_path / "B.md", MACHINE, [section("first", "0.5")], ORDER)
    text = (tmp_path / "B.md").read_text()
    assert "| CPU | one |" in text
    assert "Asked: a bar" in text
    assert "| bar | 0.5 | **passed** |" in text
    assert "| size | a\\|b |\n| --- | --- |\n| 1 MiB | 0.5 |" in text
    assert "- a note" in text


def test_one_section_is_written_again_and_the_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "B.md"
    write(path, MACHINE, [section("second", "two"), section("first", "one more")], ORDER)
    write(path, MACHINE, [section("first", "three")], ORDER)
    text = path.read_text()
    assert text.index("The first") < text.index("The second")
    assert "three" in text
    assert "two" in text
    assert "one more" not in text
    assert text.count("<!-- first -->") == 1


def test_figures_of_two_machines_are_not_mixed(tmp_path: Path) -> None:
    path = tmp_path / "B.md"
    write(path, MACHINE, [section("first", "1.0")], ORDER)
    write(path, {**MACHINE, "kernel": "three"}, [section("second", "2.0")], ORDER)
    text = path.read_text()
    assert "The first" not in text
    assert "The second" in text


def draw_nothing(_axes: object) -> None:
    """Frames are enough."""


def test_pictures_lie_beside_the_file_and_are_linked(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    drawn = section("first", "0.5")
    drawn.pictures.append(Picture("line", "A line", draw_nothing))
    write(tmp_path / "B.md", MACHINE, [drawn], ORDER)
    assert "![A line](docs/benchmarks/first-line.svg)" in (tmp_path / "B.md").read_text()
    file = tmp_path / "docs" / "benchmarks" / "first-line.svg"
    before = file.read_bytes()
    write(tmp_path / "B.md", MACHINE, [drawn], ORDER)
    assert file.read_bytes() == before  # nothing of the time or of chance is in it


def test_what_is_committed_is_what_would_be_written() -> None:
    text = (Path(__file__).parents[2] / "BENCHMARKS.md").read_text()
    assert rendered(text) == text, "python -m benchmarks --render BENCHMARKS.md writes the overview again"
