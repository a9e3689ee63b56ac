"""Arrays lie at the offsets that their rows state, and every row is measured."""

from pathlib import Path

import numpy as np
import pytest

from firsttouch.tools.bench import align
from firsttouch.tools.bench.settings import Settings
from firsttouch.tools.bench.tasks import align as task
from firsttouch.tools.measuring.machine import caches, level
from firsttouch.tools.measuring.picture import save

KIB = 1 << 10


@pytest.mark.parametrize("layout", align.LAYOUTS)
@pytest.mark.parametrize("nbytes", [64, 12 * KIB, 256 * KIB])
def test_arrays_begin_where_the_row_says_and_do_not_overlap(layout: str, nbytes: int) -> None:
    at = align.LAYOUTS[layout]
    made = task.arrays(nbytes, at)
    assert [array.ctypes.data % task.PAGE for array in made] == list(at)
    assert [array.nbytes for array in made] == [nbytes] * len(at)
    assert not any(np.shares_memory(a, b) for a in made for b in made if a is not b)


def test_rows_are_named_after_their_offsets_into_a_line() -> None:
    for layout, at in align.QUESTIONS[0].layouts.items():
        into = [offset % 64 for offset in at]
        if layout.startswith("all at"):
            assert into == [0, 0, 0]
        elif layout.startswith("all "):
            assert into == [int(layout.split()[1])] * 3
        else:
            assert into == ([16, 16, 0] if layout.startswith("operands") else [0, 0, 16])
    for layout, (a, b, c) in align.QUESTIONS[1].layouts.items():
        assert c - a == c - b == (0 if "same" in layout else int(layout.split()[1]))


def test_operations_do_what_they_are_called() -> None:
    a, b, c = task.arrays(4 * KIB, (0, 1024, 2048))
    a[:], b[:], c[:] = np.arange(KIB), 2.0, 0.0
    task.OPERATIONS["copy"](a, b, c)
    np.testing.assert_array_equal(c, a)
    task.OPERATIONS["add"](a, b, c)
    np.testing.assert_array_equal(c, a + 2)
    assert task.OPERATIONS["sum"](a, b, c) == a.sum()


def test_a_quick_run_fills_every_table_and_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    section = align.run(Settings(quick=True, sizes=(100, 8 * KIB + 1)))
    assert [len(table.rows) for table in section.tables] == [8, 8, 6, 5, 5]
    assert [column.split(" (")[0] for column in section.tables[0].columns[1:]] == ["1 KiB", "8.0625 KiB"]  # whole lines
    assert any("smaller than 1 KiB" in note for note in section.notes)
    save(section.pictures, tmp_path / "all.png")
    assert any("Offsets of NumPy" in note for note in section.notes)


def test_caches_are_read_as_the_kernel_writes_them(tmp_path: Path) -> None:
    for number, (kind, depth, size) in enumerate(
        [("Data", 1, "48K"), ("Instruction", 1, "64K"), ("Unified", 2, "2M"), ("Unified", 3, "")]
    ):
        folder = tmp_path / f"index{number}"
        folder.mkdir()
        for name, text in (("type", kind), ("level", str(depth)), ("size", size)):
            (folder / name).write_text(f"{text}\n")
    known = caches(tmp_path)
    assert known == {"L1": 48 * KIB, "L2": 2 << 20}
    assert [level(nbytes, known) for nbytes in (KIB, 49 * KIB, 3 << 20)] == ["L1", "L2", "memory"]
    assert caches(tmp_path / "nowhere") == {}
