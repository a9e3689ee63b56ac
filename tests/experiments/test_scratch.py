"""Every way computes the same, and a small run completes."""

import importlib.util
from pathlib import Path

import pytest

from firsttouch import _firsttouch
from firsttouch.tools.bench import scratch
from firsttouch.tools.bench.settings import Settings
from firsttouch.tools.bench.tasks import scratch as task
from firsttouch.tools.measuring.picture import save


@pytest.mark.parametrize("items", [1, 30, 20_000])
@pytest.mark.parametrize("language", ["NumPy", "Rust"])
def test_every_way_gives_the_same_sum(language: str, items: int) -> None:
    ways = task.LANGUAGES[language](items)
    assert tuple(ways) == task.WAYS
    assert {turns(3) for turns in ways.values()} == {items * (items + 1) // 2}


def test_every_way_in_numba_gives_the_same_sum() -> None:
    pytest.importorskip("numba")
    for items in (1, 30, 20_000):
        ways = task.in_numba(items)
        assert tuple(ways) == task.WAYS
        assert {turns(3) for turns in ways.values()} == {items * (items + 1) // 2}


def test_a_way_that_is_none_is_told() -> None:
    with pytest.raises(ValueError, match='no way is called "stack"'):
        _firsttouch.scratch_turns("stack", 30, 1)


def test_a_quick_run_has_a_row_for_each_language_and_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)  # as without Numba: it compiles long
    section = scratch.run(Settings(quick=True, sizes=(240, 8192)))
    assert [row[0].split(":")[0] for row in section.tables[0].rows] == ["Julia", "NumPy", "Rust"]
    assert [[row[0] for row in table.rows] for table in section.tables[1:]] == [["240 bytes", "8 KiB"]] * 2
    assert any("Numba is not installed" in note for note in section.notes)
    save(section.pictures, tmp_path / "all.png")
