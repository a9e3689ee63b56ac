"""Tables remain readable if there is no room for their columns."""

import io

import pytest

from firsttouch.tools.measuring.report import Table

pytest.importorskip("rich")

TABLE = Table("Medians", ("allocator", "wall time", "speed-up (95 %)"), [("the default", "391 ms ± 3.1 %", "1")])


def shown(width: int) -> str:
    from rich.console import Console

    from firsttouch.tools.measuring.console import show

    stream = io.StringIO()
    show(TABLE, Console(file=stream, width=width, highlight=False, markup=False))
    return stream.getvalue()


@pytest.mark.parametrize("width", [10, 30, 200])
def test_no_figure_is_torn(width: int) -> None:
    assert "391 ms ± 3.1 %" in shown(width)
    assert "the default" in shown(width)


def test_each_row_is_a_block_where_it_is_narrow() -> None:
    assert "  wall time        391 ms ± 3.1 %\n  speed-up (95 %)  1\n" in shown(20)
    assert "─" in shown(200)


def test_a_table_that_just_fits_is_a_table() -> None:
    """Cells and broken headings of 11, 14 and 6 characters, two gaps of three, and a blank at either edge."""
    assert "─" in shown(39)
    assert "391 ms ± 3.1 %" in shown(39)
    assert max(map(len, shown(39).splitlines())) <= 39
    assert "─" not in shown(38)


def test_small_sizes_end_below_each_other() -> None:
    from rich.console import Console

    from firsttouch.tools.measuring.console import grid

    stream = io.StringIO()
    grid(
        None, ("allocator", "peak memory"), [("pool()", "10 MiB"), ("default", "9 MiB")], Console(file=stream, width=80)
    )
    ends = [line.index("MiB") for line in stream.getvalue().splitlines() if "MiB" in line]
    assert ends == ends[:1] * 2


WIDE = Table(
    "Medians",
    ("allocator", "wall time", "speed-up (95 %)", "system time", "page faults", "peak memory"),
    [
        ("the default", "1.39 s \u00b1 12.1 %", "1", "123 ms", "1,234,567", "1,234 MiB"),
        ('pool(pages(huge="thp"))', "391 ms \u00b1 3.1 %", "1.23 (1.20 to 1.26)", "12.3 ms", "34,567", "1,234 MiB"),
    ],
)


@pytest.mark.parametrize("width", range(20, 130, 5))
def test_no_cell_is_broken_at_any_width(width: int) -> None:
    from rich.console import Console

    from firsttouch.tools.measuring.console import show

    stream = io.StringIO()
    show(WIDE, Console(file=stream, width=width, highlight=False, markup=False))
    lines = stream.getvalue().splitlines()
    for row in WIDE.rows:
        for cell in row:
            assert any(cell in line for line in lines), (cell, stream.getvalue())
