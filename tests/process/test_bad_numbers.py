"""Sizes, durations and page sizes: accepted, or rejected with what is accepted."""

import math
from typing import Any

import pytest

import firsttouch as ft

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (65536, 65536),
        (0, 0),
        ("65536", 65536),
        ("64 KiB", 65536),
        ("4 GB ", 4_000_000_000),
        ("4gib", 4 << 30),
        ("1.5 MiB", 3 << 19),
        (" 512m", 512 << 20),
        ("1_000", 1000),
    ],
)
def test_sizes_that_people_write(text: int | str, size: int) -> None:
    assert repr(ft.pool(max_idle=text)) == f"pool(pages(huge='thp'), max_idle={size}, decay=1.0)"


@pytest.mark.parametrize("text", ["lots", "", "-1", "4 GiBB", "1..5 G", "1e9", "NaN", "4,5 GB", "GiB", "four", "5 µB"])
def test_other_texts_show_what_is_accepted(text: str) -> None:
    with pytest.raises(ValueError, match="max_idle: ") as error:
        ft.pool(max_idle=text)
    assert text in str(error.value)
    assert '"64 KiB"' in str(error.value)


@pytest.mark.parametrize("number", [-1, -(1 << 70), 1 << 64, 1 << 200])
def test_numbers_that_are_no_size(number: int) -> None:
    with pytest.raises(
        ValueError, match=r"is not a number of bytes: give 0 or more|is larger than any address"
    ) as error:
        ft.pool(max_idle=number)
    assert f"max_idle={number}" in str(error.value)


@pytest.mark.parametrize("wrong", [3.5, b"4 GiB", [4], math.nan, True, False])
def test_sizes_of_the_wrong_type(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"max_idle=.* is an? .*: give a number of bytes, text like"):
        ft.pool(max_idle=wrong)


@pytest.mark.parametrize("decay", [-1, -0.001, math.nan, math.inf, -math.inf, 1e300])
def test_times_that_are_none(decay: float) -> None:
    with pytest.raises(ValueError, match="is not a time: give seconds, 0 or more, or None for never"):
        ft.pool(decay=decay)


@pytest.mark.parametrize("decay", ["1", b"1", [1], True, 1j])
def test_times_of_the_wrong_type(decay: Any) -> None:
    with pytest.raises(TypeError, match="give seconds, 0 or more, or None for never"):
        ft.pool(decay=decay)


def test_times_that_are_understood() -> None:
    assert repr(ft.pool(decay=None)).endswith("decay=None)")
    assert repr(ft.pool(decay=0)).endswith("decay=0.0)")
    assert repr(ft.pool(decay=0.25)).endswith("decay=0.25)")
    assert repr(ft.pool(decay=86400)).endswith("decay=86400.0)")


@pytest.mark.parametrize("alignment", [0, 3, -8, 12, 1 << 31, 1 << 60, "3", "0", "2 GiB", "lots", "-8"])
def test_alignments_that_can_not_be(alignment: int | str) -> None:
    with pytest.raises(ValueError, match="alignment"):
        ft.aligned(alignment)


@pytest.mark.parametrize("alignment", [None, 64.0, [64], True])
def test_alignments_of_the_wrong_type(alignment: Any) -> None:
    with pytest.raises(TypeError, match=r"alignment=.* is an? "):
        ft.aligned(alignment)


def test_alignments_that_can() -> None:
    assert repr(ft.aligned("64 KiB")) == "aligned(65536)"
    assert repr(ft.aligned(1)) == "aligned(1)"
    assert repr(ft.aligned(1 << 30)) == "aligned(1073741824)"


@pytest.mark.parametrize("huge", ["3M", "THP", True, 1, None, 2 << 20, "", 0])
def test_page_sizes_that_can_not_be(huge: Any) -> None:
    with pytest.raises((ValueError, TypeError)) as error:
        ft.pages(huge=huge)
    assert f'huge={huge!r}: give False or "thp"' in str(error.value)


def test_every_repr_makes_the_same_again() -> None:
    made = [ft.pool(), ft.pool(ft.pages(), max_idle=5, decay=None), ft.pages("thp"), ft.pages(), ft.malloc()]
    for allocator in [*made, ft.calloc(), ft.aligned(4096), ft.numpy_default()]:
        again = eval(repr(allocator), vars(ft))
        assert repr(again) == repr(allocator)
