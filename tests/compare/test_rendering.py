"""Tables on terminals of any width, and titles of pictures."""

import io
from pathlib import Path
from typing import Any

import pytest

from firsttouch.tools.measuring.report import Picture, Table, save_pictures

pytest.importorskip("rich")

WIDE = Table(
    "Medians",
    ("allocator", "time", "speed-up (95 %)", "processor", "faults", "peak"),
    [
        ("the default", "1.39 s", "1", "123 ms", "1,234,567", "1,234 MiB"),
        ("huge tuned glibc", "391 ms", "1.23 (1.20-1.26)", "12.3 ms", "34,567", "1,234 MiB"),
    ],
)


def shown(table: Table, width: int) -> str:
    from rich.console import Console

    stream = io.StringIO()
    table.show(Console(file=stream, width=width, highlight=False, markup=False))
    return stream.getvalue()


def test_a_comparison_is_a_table_at_80_columns() -> None:
    lines = shown(WIDE, 80).splitlines()
    assert any("\u2500" in line for line in lines)
    assert max(map(len, lines)) <= 80
    assert all(name in lines[2] for name in WIDE.columns), "headings in one line"


def test_a_long_title_stays_within_its_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    drawn: list[Any] = []
    save_pictures([Picture("At its peak so much was resident. " * 5, drawn.append)], tmp_path / "x.png")
    assert drawn[0].title.get_window_extent().x0 >= 0
