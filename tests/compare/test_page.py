"""The self-contained HTML page."""

import re
from html.parser import HTMLParser
from typing import TYPE_CHECKING

import pytest

from firsttouch.tools.measuring.page import Page
from firsttouch.tools.measuring.picture import Picture
from firsttouch.tools.measuring.report import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

pytest.importorskip("matplotlib")

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
    found = Page(NASTY, "now", [NASTY], [table], [picture, picture], [NASTY], {"All": NASTY}, {"CPU": NASTY})
    return found.html()


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
