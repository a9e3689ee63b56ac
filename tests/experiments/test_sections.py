"""Each experiment from beginning to end, with sizes so small that only relations are checked that hold anywhere."""

import importlib
from pathlib import Path

import pytest

from firsttouch.tools import preload
from firsttouch.tools.bench import NAMES, in_cpp
from firsttouch.tools.bench.settings import Settings
from firsttouch.tools.measuring.picture import save
from firsttouch.tools.measuring.report import Section

pytest.importorskip("matplotlib", reason="pictures need matplotlib")
MIB = 1 << 20
MINE = {"zeros": (MIB,), "touch": (MIB,), "triad": (MIB,), "refill": (MIB,)}
_done: dict[str, tuple[Section, list[float]]] = {}


def section(name: str) -> Section:
    """Each experiment runs once for all the tests of this file."""
    if name not in _done:
        seen: list[float] = []
        module = importlib.import_module(f"firsttouch.tools.bench.{name}")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("firsttouch.tools.bench.touch.processors", lambda: 1)
            _done[name] = module.run(Settings(quick=True, sizes=MINE[name], progress=seen.append)), seen
    return _done[name][0]


@pytest.mark.parametrize("name", MINE)
def test_the_outcome_is_whole(name: str, tmp_path: Path) -> None:
    found = section(name)
    assert found.name == name
    assert found.tables
    assert all(len(row) == len(table.columns) for table in found.tables for row in table.rows)
    assert found.notes
    assert not any("Not written" in note or "Not comparable" in note for note in found.notes)
    seen = _done[name][1]
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    for picture in found.pictures:
        file = tmp_path / "one.svg"
        save([picture], file)
        drawn = file.read_bytes()
        assert 5_000 < len(drawn) < 200_000
        save([picture], file)
        assert file.read_bytes() == drawn  # the same figures, the same file


def test_the_triad_says_what_stood_behind_its_arrays() -> None:
    found = section("triad")
    by_pages = {row[1]: row for row in found.tables[0].rows}
    assert by_pages["4 KiB pages"][5:] == ["100 %", "100 %", "100 %"]
    assert any("zero-page trap" in note for note in found.notes)
    assert any("bit by bit" in note for note in found.notes)
    assert len(found.verdicts) == 3


@pytest.mark.parametrize("name", ["touch", "triad"])
def test_the_classic_experiments_also_run_in_cpp(name: str) -> None:
    if in_cpp.compiler() is None:
        pytest.skip("needs a C++ compiler")
    table = section(name).tables[-1]
    assert "in C++" in table.title
    assert [row[0].split(",")[0] for row in table.rows] == ["new[]", "new[]", "malloc", "malloc", "calloc", "calloc"]
    assert table.columns[1:3] == ["plainly", "tuned glibc, huge pages"]
    assert ("preloaded pool" in table.columns) == (preload.missing() is None)


@pytest.mark.parametrize("found", [None, "false"])
def test_without_a_compiler_they_are_said_to_be_skipped(found: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_cpp, "compiler", lambda: found)
    tables, notes, raw = in_cpp.section_parts("touch", MIB, 1, ("first", "again"), str, "bytes")
    assert (tables, raw) == ([], {})
    assert notes == ["The program in C++ is skipped: no compiler makes one ($CXX, c++, g++, clang++)."]


def test_a_second_fill_never_faults() -> None:
    for table in section("refill").tables:
        assert [int(row[5]) for row in table.rows] == pytest.approx([0, 0, 0], abs=8)


def test_zeros_tell_every_phase_and_their_spread() -> None:
    found = section("zeros")
    titles = [table.title for table in found.tables]
    assert "**1 MiB, fresh memory, medians**" in titles
    assert "looks" in found.notes[0]
    assert [picture.name for picture in found.pictures] == [
        "remains",
        "phases-fresh",
        "phases-recycled",
        "histograms",
    ]


def test_touch_reports_the_order_and_the_fallbacks() -> None:
    notes = section("touch").notes
    assert any("late in a round" in note or "is unknown" in note for note in notes)
    assert any("machine-wide" in note for note in notes)


@pytest.mark.parametrize("name", NAMES)
def test_every_experiment_is_a_file_that_says_where_it_comes_from(name: str) -> None:
    file = Path(importlib.import_module("firsttouch.tools.bench").__path__[0]) / f"{name}.py"
    assert file.read_text().startswith('"""')
