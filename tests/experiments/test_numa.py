"""Cold copies fault in pages and warm ones do not; missing nodes are not requested."""

from pathlib import Path

import pytest

import firsttouch as ft
from firsttouch.tools.bench import numa
from firsttouch.tools.bench.settings import Settings
from firsttouch.tools.bench.tasks import numa as task
from firsttouch.tools.measuring.picture import save
from firsttouch.tools.measuring.report import Section
from firsttouch.tools.measuring.rounds import Samples

MIB = 1 << 20
PAGES = MIB // 4096
NODE = next(node.number for node in ft.topology().nodes if node.processors and node.memory)


def test_the_first_copies_of_a_row_make_pages_and_later_ones_do_not() -> None:
    reply = task.in_a_row(NODE, NODE, NODE, MIB)
    cold = [reply[f"{target} {source} cold faults"] for target, source in task.COPIES]
    again = [reply[f"{target} {source} again faults"] for target, source in task.COPIES]
    for count, least in zip(cold, (2 * PAGES, PAGES, PAGES, 0), strict=True):
        assert least <= count <= least + 16
    assert max(again) <= 16


def test_a_cold_copy_makes_both_arrays_and_a_warm_one_none() -> None:
    reply = task.between(NODE, NODE, NODE, MIB)
    assert 2 * PAGES <= reply["cold faults"] <= 2 * PAGES + 16
    assert reply["warm faults"] <= 16
    assert reply["misplaced"] == 0
    assert min(reply["cold"], reply["warm"]) > 0


def test_where_no_node_can_be_bound_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> object:
        raise MemoryError("not granted")

    monkeypatch.setattr(ft, "numa", refused)
    task.memory.cache_clear()
    assert task.between(NODE, NODE, NODE, MIB)["bound"] == 0
    task.memory.cache_clear()


def test_a_quick_run_names_the_difference(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    section = numa.run(Settings(quick=True, sizes=(MIB,)))
    assert [row[0] for row in section.tables[0].rows] == ["b0 from a0", "b1 from a0", "b1 from a1", "b0 from a1"]
    assert any("first time measures page faults" in note for note in section.notes)
    if len(ft.topology().nodes) == 1:
        assert len(section.tables[-1].rows) == 1
        assert any("no distance to measure" in note for note in section.notes)
    save(section.pictures, tmp_path / "all.png")


def test_with_two_nodes_distance_and_first_touch_are_told_apart(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    found: dict[tuple[int, int, int], Samples] = {}
    for way in ((cpu, source, target) for cpu in (0, 1) for source in (0, 1) for target in (0, 1)):
        found[way] = Samples()
        warm = 0.1 if len(set(way)) == 1 else 0.2
        reply = {"cold": 0.5, "warm": warm, "cold faults": 512, "warm faults": 0, "bound": 1, "misplaced": 0}
        for _ in range(2):
            found[way].add("NumPy", 0, reply)
    section = Section("numa", "", "")
    numa.between(section, MIB, found)
    assert len(section.tables[0].rows) == 8
    assert any("Distance costs up to 2.00 times, first touch up to 5.00 times" in note for note in section.notes)
    save(section.pictures, tmp_path / "matrix.png")
