"""Arguments that are no allocators, sizes, times or alignments: errors that say what is accepted."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import MIB

pytestmark = pytest.mark.quick

TAKERS: dict[str, Callable[[Any], object]] = {
    "install()": ft.install,
    "use()": ft.use,
    "pool()": ft.pool,
    "trim()": ft.trim,
    "stats()": ft.stats,
}


@pytest.mark.parametrize("caller", TAKERS)
@pytest.mark.parametrize("wrong", [42, 3.5, b"pool", object, [], np.ones(3), True], ids=repr)
def test_what_is_no_allocator(caller: str, wrong: object) -> None:
    with pytest.raises(TypeError) as error:
        TAKERS[caller](wrong)
    said = str(error.value)
    assert said.startswith(f"{caller} takes an allocator, like firsttouch.pool(), not {type(wrong).__name__}: ")
    assert repr(wrong)[:20] in said
    assert not ft.is_installed()


@pytest.mark.parametrize("caller", TAKERS)
def test_a_text_that_is_no_expression(caller: str) -> None:
    with pytest.raises(ValueError, match="no allocator 'x' in 'x': there are aligned, calloc, "):
        TAKERS[caller]("x")


@pytest.mark.parametrize("caller", TAKERS)
@pytest.mark.parametrize("name", ["pool", "pages", "malloc", "calloc", "aligned", "numpy_default"])
def test_a_factory_that_was_not_called(caller: str, name: str) -> None:
    with pytest.raises(TypeError, match=rf"got the function firsttouch\.{name}: did you mean firsttouch\.{name}\(\)\?"):
        TAKERS[caller](getattr(ft, name))


def test_more_levels_than_a_stack_has_room_for() -> None:
    levels = [ft.pool()]

    def pile_up() -> None:
        while len(levels) < 1000:
            levels.append(ft.tracked(levels[-1]))

    with pytest.raises(ValueError, match=r"tracked\(\) stands on more than \d+ other allocators"):
        pile_up()
    allocator = levels[-1]
    assert allocator.zeros(1000).sum() == 0
    again = ft.use(repr(allocator))  # as deep as it is, its text is an expression
    assert repr(allocator) in repr(again)


@pytest.mark.parametrize("allocator", [ft.malloc(), ft.aligned(128), ft.aligned("2 MiB")], ids=repr)
def test_install_refuses_what_it_could_not_tell_by_address(allocator: ft.Allocator) -> None:
    with pytest.raises(TypeError) as error:
        ft.install(allocator)
    said = str(error.value)
    assert said.startswith(f"install() cannot take {allocator!r}: its blocks lie outside")
    assert "use()" in said
    assert not ft.is_installed()


def test_install_refuses_to_install_numpy() -> None:
    with pytest.raises(TypeError, match=r"install\(\) cannot take numpy_default\(\).*uninstall\(\)"):
        ft.install(ft.numpy_default())


def test_a_refused_install_leaves_what_was_installed() -> None:
    pool = ft.pool()
    ft.install(pool)
    for wrong in (ft.malloc(), ft.numpy_default(), 3, ft.pages):
        with pytest.raises(TypeError):
            ft.install(wrong)  # type: ignore[arg-type]
    assert ft.get_allocator(np.empty(MIB)) == ft.get_allocator() == pool


@pytest.mark.parametrize("upstream", [ft.malloc(), ft.calloc(), ft.aligned(64), ft.pool()], ids=repr)
def test_a_pool_stands_on_everything_but_numpy(upstream: ft.Allocator) -> None:
    assert repr(ft.pool(upstream)) == f"pool({upstream!r}, max_idle=None, decay=1.0)"
    with pytest.raises(TypeError, match=r"^pool\(\) cannot use numpy_default\(\)"):
        ft.pool(ft.numpy_default())


def test_allocators_are_made_by_their_factories_only() -> None:
    with pytest.raises(TypeError):
        ft.Allocator()
    with pytest.raises(AttributeError):
        ft.pool().max_idle = 3  # type: ignore[attr-defined]


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
    assert repr(ft.pool(max_idle=text)) == repr(ft.pool(max_idle=size))


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
