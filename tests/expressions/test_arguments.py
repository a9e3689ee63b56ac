"""Invalid arguments of factories are named, with what is accepted."""

from typing import Any

import pytest

import firsttouch as ft
from tests.callbacks import Callbacks

pytestmark = pytest.mark.quick


@pytest.mark.parametrize("wrong", [0, 3, -8, 2**60, 2**31, 2**64, 2**70, 65, "0", "3 KiB", "2 GiB", "x", ""], ids=repr)
def test_alignments_that_are_none(wrong: Any) -> None:
    with pytest.raises(ValueError, match=r"^alignment") as error:
        ft.aligned(wrong)
    assert len(str(error.value)) > 30


@pytest.mark.parametrize("wrong", [None, 3.5, True, b"64", [64], ft.malloc()], ids=repr)
def test_alignments_of_the_wrong_type(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"^alignment=.* is an? .*: give a number of bytes, or text like"):
        ft.aligned(wrong)


@pytest.mark.parametrize(
    ("budget", "said"), [(0, "budget=0 would serve no array"), (-1, "budget=-1"), ("0 B", "budget")]
)
def test_budgets_that_are_none(budget: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        ft.limited(ft.pool(), budget)


def test_a_bound_that_leaves_no_budget() -> None:
    with pytest.raises(ValueError, match="at_most=0 would serve no array: give at least 1 byte"):
        ft.limited("auto", at_most=0)


@pytest.mark.parametrize("arguments", [(), (ft.pool(),), ("4 GiB",), (4096,)])
def test_a_budget_that_is_missing(arguments: Any) -> None:
    with pytest.raises(TypeError, match=r'limited\(\) needs a budget in bytes .*limited\(pool\(\), "4 GiB"\)'):
        ft.limited(*arguments)


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda: ft.filled(on_allocate=256), ValueError, "on_allocate=256 is not a byte: give 0 to 255, or None"),
        (lambda: ft.filled(on_free=-1), ValueError, "on_free=-1 is not a byte"),
        (lambda: ft.filled(on_free=b"x"), TypeError, "on_free=b'x' is a bytes: give a byte"),  # type: ignore[arg-type]
        (lambda: ft.filled(on_free=True), TypeError, "on_free=True is a bool"),
        (lambda: ft.guarded(keep=-1), ValueError, "keep=-1 is not a number of bytes"),
        (lambda: ft.guarded(keep=2.5), TypeError, "keep=2.5 is a float"),  # type: ignore[arg-type]
        (lambda: ft.guarded(keep="a lot"), ValueError, "keep: "),
        (lambda: ft.guarded(side="both"), ValueError, "side='both': give 'after' or 'before'"),  # type: ignore[arg-type]
        (lambda: ft.guarded(side=1), TypeError, "side=1: give 'after' or 'before'"),  # type: ignore[arg-type]
        (lambda: ft.tracked(lines="yes"), TypeError, "lines='yes' is a str: give True or False"),  # type: ignore[arg-type]
        (lambda: ft.tracked(lines=1), TypeError, "lines=1 is an int: give True or False"),  # type: ignore[arg-type]
        (
            lambda: ft.allocators.from_functions(malloc=0, free=1),
            ValueError,
            "malloc=0 is not the address of a function",
        ),
        (lambda: ft.allocators.from_functions(malloc=1, free=0), ValueError, "free=0 is not the address of a function"),
        (lambda: ft.allocators.from_functions(malloc=1, free=1, calloc=-1), ValueError, "calloc=-1 is not an address"),
        (
            lambda: ft.allocators.from_functions(malloc=1, free=1, context=2**64),
            ValueError,
            "context=.* is not an address",
        ),
        (lambda: ft.allocators.from_functions(malloc=print, free=1), TypeError, "malloc=.*give an address"),  # type: ignore[arg-type]
    ],
)
def test_options(call: Any, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        call()


@pytest.mark.parametrize("factory", [ft.pool, ft.tracked, ft.guarded, ft.filled, lambda wrong: ft.limited(wrong, 10)])
@pytest.mark.parametrize(
    "wrong", [42, 3.5, b"pool", [], True, object()], ids=lambda wrong: repr(wrong).split(" at 0x")[0]
)
def test_upstreams_that_are_none(factory: Any, wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"^(pool|tracked|limited|guarded|filled)\(\) takes an allocator, like"):
        factory(wrong)
    with pytest.raises(ValueError, match="no allocator 'nope'"):
        factory("nope")


def test_functions_of_ctypes_serve() -> None:
    asked: list[int] = []
    callbacks = Callbacks(asked=asked.append)
    allocator = callbacks.allocator()
    array = allocator.full(1000, 3.0)
    assert array.sum() == 3000
    assert array.ctypes.data % 64 == 0
    assert max(asked) >= 8000
    assert not allocator.zeros(1000).any()
    assert ft.get_allocator(array) == allocator
    del array
