"""Tables on terminals of any width, and the self-contained HTML page."""

import io
import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from firsttouch.tools.measuring.report import Page, Picture, Table

# --- Tables remain readable if there is no room for their columns.

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


def test_small_sizes_end_below_each_other() -> None:
    text = shown(Table("", ("allocator", "peak memory"), [("pool()", "10 MiB"), ("default", "9 MiB")]), 80)
    ends = [line.index("MiB") for line in text.splitlines() if "MiB" in line]
    assert ends == ends[:1] * 2


@pytest.mark.parametrize("width", range(80, 130, 7))
def test_no_figure_is_broken_where_there_is_room(width: int) -> None:
    lines = shown(WIDE, width).splitlines()
    assert [cell for row in WIDE.rows for cell in row[1:] if not any(cell in line for line in lines)] == []


# --- The self-contained HTML page.

if TYPE_CHECKING:
    from matplotlib.axes import Axes

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")

NASTY = "<b>&\"'$x $(y)</b>"


class Balance(HTMLParser):
    """Every tag that is opened is closed."""

    EMPTY = ("meta", "br", "path", "use")

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value for name, value in attrs if name == "id" and value]
        if tag not in self.EMPTY:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value for name, value in attrs if name == "id" and value]

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.EMPTY:
            assert self.open.pop() == tag


def draw(axes: "Axes") -> None:
    axes.plot([1, 2], [3, 4], marker="o")


def page() -> str:
    picture = Picture("runs", "A picture", draw, height=2)
    table = Table("A table", ["what", NASTY], [(NASTY, "1")])
    return Page(NASTY, [NASTY], [table], [picture, picture], [NASTY], {"All": NASTY}).html()


def test_texts_are_escaped_and_nothing_is_fetched() -> None:
    text = page()
    assert "<b>" not in text
    assert "$x $(y)" in text
    assert not re.search(r"""(src|href)=["'](?!#)""", text)
    assert "http" not in re.sub(r"http://www\.w3\.org/[\w/]*", "", text)


def test_it_is_well_formed() -> None:
    balance = Balance()
    balance.feed(page())
    assert balance.open == []


def test_pictures_take_the_pages_colour_and_share_no_references() -> None:
    text = page()
    assert "currentColor" in text
    assert "#010203" not in text
    roomy, narrow = (set(re.findall(r'url\(#(\w+)\)|href="#(\w+)"', svg)) for svg in text.split("<svg")[1:3])
    assert roomy
    assert not roomy & narrow
