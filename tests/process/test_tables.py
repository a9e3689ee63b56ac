"""What notebooks show: small tables of what else is text."""

import re

import numpy as np
import pytest

import firsttouch as ft


def shown(thing: object) -> dict[str, str]:
    """The texts of a table's rows by their labels."""
    html: str = thing._repr_html_()  # type: ignore[attr-defined]
    assert re.fullmatch(r"<table><caption>[^<]+</caption>(<tr>.*</tr>)+</table>", html)
    return dict(re.findall(r"<th[^>]*>([^<]*)</th><td[^>]*>([^<]*)</td>", html))


def test_receipt() -> None:
    a = ft.pages(huge="thp", numa="bind:0").zeros(1 << 20)
    found = shown(ft.receipt(a))
    assert found["size"] == "8 MiB, on 8 MiB of whole pages"
    assert "bind:0" in found["granted"] or "numa" in found["not granted"]


def test_statistics_and_inspections() -> None:
    pool = ft.pool()
    a = pool.ones(1 << 20)
    assert shown(ft.stats(pool))["in_use"] == "8 MiB"
    assert shown(ft.inspect(a))["allocator"] == repr(pool).replace('"', "&quot;")


@pytest.mark.parametrize("known", [True, False])
def test_measured_says_what_is_not_known(known: bool) -> None:
    with ft.use(ft.pool() if known else ft.numpy_default()), ft.measure() as m:
        ft.ones(1 << 20, allocator=None if known else ft.malloc())
    assert "?" not in str(m) + m._repr_html_()
    unknown = "not known, as not all arrays came from a pool: first_touched, recycled and recycled_arrays"
    assert (unknown not in str(m)) == known
    assert (unknown not in m._repr_html_()) == known
    assert ("touched first" in str(m)) == known
    assert shown(m)["held at once"] == "8 MiB"
    assert np.isfinite(m.peak)
