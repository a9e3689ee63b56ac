"""What notebooks show is a small table, with the figures of the text."""

from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import firsttouch as ft

pytestmark = pytest.mark.quick


def measured() -> Any:
    with ft.measure() as found:
        np.ones(100_000)
    return found


SHOWN: list[tuple[Callable[[], Any], str]] = [
    (lambda: ft.inspect(ft.pages(huge="thp").ones(1 << 20, "u1")), "1 MiB"),
    (lambda: ft.receipt(ft.pages(huge="thp").ones(1 << 20, "u1")), "thp"),
    (lambda: ft.receipt(ft.pool().ones(1 << 20, "u1")), "fresh"),
    (measured, "781.25 KiB"),
    (ft.stats, "16,384"),
    (lambda: ft.inspect(np.zeros(3, [("<b>", "u1")])), "<b>"),
]


class Table(HTMLParser):
    """The tags and texts of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


@pytest.mark.parametrize(("make", "expected"), SHOWN)
def test_tables(make: Callable[[], Any], expected: str) -> None:
    table = Table(make()._repr_html_())
    assert table.tags == {"table", "caption", "tr", "th", "td"}
    assert any(expected in text for text in table.texts)
