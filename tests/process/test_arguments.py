"""Arguments that are no allocators, sizes, times or alignments: errors that say what is accepted."""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.creation.kinds import FUNCTIONS
from tests.probe import MIB

pytestmark = pytest.mark.quick


def made(name: str, allocator: Any) -> object:
    return getattr(ft, name)(3, 3, allocator=allocator)


TAKERS: dict[str, Callable[[Any], object]] = {
    "install()": ft.install,
    "use()": ft.use,
    "pool()": ft.pool,
    "trim()": ft.trim,
    "stats()": ft.stats,
    **{f"{name}()": functools.partial(made, name) for name in FUNCTIONS},
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
@pytest.mark.parametrize(("has", "lacks"), [("allocate", "deallocate"), ("deallocate", "allocate")])
def test_half_an_allocator(caller: str, has: str, lacks: str) -> None:
    half = type("Half", (), {has: lambda *_: 0})()
    with pytest.raises(TypeError, match=rf"pool\(\), not Half, which has no {lacks}\(\): <"):
        TAKERS[caller](half)


@pytest.mark.parametrize("caller", TAKERS)
def test_a_text_that_is_no_expression(caller: str) -> None:
    with pytest.raises(ValueError, match="no allocator 'x': there are aligned, calloc, "):
        TAKERS[caller]("x")


@pytest.mark.parametrize("caller", TAKERS)
@pytest.mark.parametrize("name", ["pool", "pages", "malloc", "calloc", "aligned", "numpy_default"])
def test_a_factory_that_was_not_called(caller: str, name: str) -> None:
    with pytest.raises(TypeError, match=rf"got the function firsttouch\.{name}: did you mean firsttouch\.{name}\(\)\?"):
        TAKERS[caller](getattr(ft, name))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_misspelt_allocator(name: str) -> None:
    with pytest.raises(TypeError, match=rf"^{name}\(\) got an unexpected .* 'alocator' \(did you mean allocator\?\)$"):
        getattr(ft, name)(3, 3, alocator=ft.pool())


def test_more_levels_than_a_stack_has_room_for() -> None:
    levels = [ft.pool()]

    def pile_up() -> None:
        while len(levels) < 1000:
            levels.append(ft.filled(levels[-1]))

    with pytest.raises(ValueError, match=r"filled\(\) stands on more than \d+ other allocators"):
        pile_up()
    allocator = levels[-1]
    assert allocator.zeros(1000).sum() == 0
    again = ft.use(repr(allocator))  # as deep as it is, its text is an expression
    assert repr(allocator) in repr(again)


def test_a_refused_install_leaves_what_was_installed() -> None:
    pool = ft.pool()
    ft.install(pool)
    for wrong in (ft.numpy_default(), 3, ft.pages):
        with pytest.raises(TypeError):
            ft.install(wrong)  # type: ignore[arg-type]
    assert ft.get_allocator(np.empty(MIB)) == ft.get_allocator() == pool


@pytest.mark.parametrize("upstream", [ft.malloc(), ft.calloc(), ft.aligned(64), ft.pool()], ids=repr)
def test_a_pool_stands_on_everything_but_numpy(upstream: ft.Allocator) -> None:
    assert repr(ft.pool(upstream)) == f"pool({upstream!r})"
    with pytest.raises(TypeError, match=r"^pool\(\) cannot use numpy_default\(\)"):
        ft.pool(ft.numpy_default())


@pytest.mark.parametrize("decay", [-0.001, math.nan, math.inf, -math.inf])
def test_times_that_are_none(decay: float) -> None:
    with pytest.raises(ValueError, match="give seconds, 0 or more, or None for never"):
        ft.pool(decay=decay)
