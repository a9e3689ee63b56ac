"""BENCHMARKS.md, written as a whole and in parts."""

from pathlib import Path

import pytest

from benchmarks.document import rendered, write
from firsttouch.tools.measuring.picture import Picture
from firsttouch.tools.measuring.report import Section, Table
from firsttouch.tools.measuring.statistics import Verdict

MACHINE = {"CPU": "one", "kernel": "two"}
OTHER = {"CPU": "one", "kernel": "three"}
ORDER = ("first", "second")


def section(name: str, figure: str) -> Section:
    table = Table("**A table**", ["size", "a|b"], [("1 MiB", figure)])
    return Section(
        name, f"The {name}", "a bar", [table], [Verdict("bar", figure, "passed")], ["a note"], how="Quick, 2026-01-02."
    )


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


def test_a_section_of_another_machine_stays_and_says_so(tmp_path: Path) -> None:
    path = tmp_path / "B.md"
    write(path, MACHINE, [section("first", "1.0"), section("second", "2.0")], ORDER)
    write(path, OTHER, [section("second", "3.0")], ORDER)
    text = path.read_text()
    assert "| CPU | one |" in text
    assert "*Quick, 2026-01-02.*" in text[text.index("## The first") :]
    sentence = "*Quick, 2026-01-02. Not on the machine above but on another one: unknown cores of one, Linux three, "
    assert sentence in text[text.index("## The second") :]
    assert text.count("| 2026-01-02, another machine |") == 1
    assert rendered(text) == text
    write(path, MACHINE, [section("second", "4.0")], ORDER)
    assert "another" not in path.read_text()


def test_the_machine_of_most_sections_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "B.md"
    write(path, MACHINE, [section(name, "1.0") for name in ("first", "second", "third")], (*ORDER, "third"))
    write(path, OTHER, [section("first", "1.0")], (*ORDER, "third"))
    assert "| kernel | two |" in path.read_text()
    write(path, OTHER, [section("second", "1.0")], (*ORDER, "third"))
    text = path.read_text()
    assert "| kernel | three |" in text
    assert text.count("another one: unknown cores of one, Linux two, ") == 1
    assert text.index("## The third") < text.index("another one: ")


def test_cells_of_the_machine_may_hold_pipes(tmp_path: Path) -> None:
    write(tmp_path / "B.md", {**MACHINE, "memory": "a|b"}, [section("first", "1.0")], ORDER)
    text = (tmp_path / "B.md").read_text()
    assert "| memory | a\\|b |" in text
    assert rendered(text) == text


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
