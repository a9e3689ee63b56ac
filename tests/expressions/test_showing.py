"""Notebooks show an allocator's state, level by level; everywhere else it is its expression."""

from html.parser import HTMLParser
from typing import Any

import pytest

import firsttouch as ft

pytestmark = pytest.mark.quick


class Text(HTMLParser):
    """Collects what stands between the tags, and refuses tags that are not closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


class Printer:
    """As much of IPython's printer as is used."""

    def __init__(self) -> None:
        self.written = ""

    def text(self, text: str) -> None:
        self.written += text

    def break_(self) -> None:
        self.written += "\n"


def shown(allocator: Any) -> tuple[list[str], str]:
    printer = Printer()
    allocator._repr_pretty_(printer, False)
    return Text(allocator._repr_html_()).words, printer.written


def test_each_level_of_a_stack() -> None:
    allocator = ft.tracked(ft.limited(ft.pool(), "1 GiB"))
    kept = allocator.ones(10**6)
    words, text = shown(allocator)
    assert words[0] == repr(allocator) == text.splitlines()[0]
    assert [word for word in words if word.startswith(("tracked", "limited", "pool", "pages"))] == [
        repr(allocator),
        "tracked(lines=False)",
        "limited('1 GiB')",
        "pool(pages(huge='thp'), max_idle=None, decay=1.0)",
    ]
    assert words[words.index("tracked(lines=False)") + 1 :][:2] == ["in use", "7.63 MiB"]
    assert "  tracked(lines=False)" in text.splitlines()
    assert "    in use       7.63 MiB" in text.splitlines()
    assert kept.sum() == 10**6


@pytest.mark.parametrize(
    "make", [ft.malloc, ft.pages, ft.pool, ft.numpy_default, ft.mimalloc], ids=lambda make: make.__name__
)
def test_what_has_served_nothing(make: Any) -> None:
    allocator = make()
    words, text = shown(allocator)
    assert words[0] == repr(allocator)
    assert text.startswith(repr(allocator))


def test_plain_repr_stays_the_expression() -> None:
    assert str(ft.pages()) == repr(ft.pages()) == "pages(huge=False)"
