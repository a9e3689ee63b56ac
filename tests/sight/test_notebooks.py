"""What notebooks show is a small table, with the figures of the text."""

import html
import re
from collections.abc import Callable
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


@pytest.mark.parametrize(("make", "expected"), SHOWN)
def test_tables(make: Callable[[], Any], expected: str) -> None:
    page = make()._repr_html_()
    assert set(re.findall(r"<(\w+)", page)) == {"table", "caption", "tr", "th", "td"}
    assert expected in html.unescape(re.sub("<.*?>", "", page))
