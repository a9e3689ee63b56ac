"""Expressions and arguments as Python objects; the grammar, options and errors are tested in Rust (tests/spec.rs)."""

import numpy as np
import pytest

import firsttouch as ft
from firsttouch._internal import resolve
from tests.callbacks import Callbacks

pytestmark = pytest.mark.quick


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("aligned('\ud800')", ValueError, ""),
        ("pool(decai=3)", TypeError, "pool() takes no decai (did you mean decay?): it takes upstream, max_idle, "),
        ("filled(numpy_default)", ValueError, "no allocator 'numpy_default'"),
    ],
)
def test_what_is_no_expression(text: str, kind: type[Exception], said: str) -> None:
    with pytest.raises(kind) as error:
        resolve.parse(text)
    assert said in str(error.value)
    assert len(str(error.value)) < 700


@pytest.mark.parametrize("text", ["from_functions", "filled(ft.from_functions(malloc=1, free=2))"])
def test_text_names_no_addresses_of_code(text: str) -> None:
    for make in (resolve.parse, ft.install, lambda text: ft.zeros(9, allocator=text)):
        with pytest.raises(ValueError, match="no allocator 'from_functions'"):
            make(text)


def test_one_text_is_one_allocator() -> None:
    text = 'limited(pool(), "1 MiB")'
    array = ft.ones(100_000, allocator=text)
    assert ft.get_allocator(array) == resolve.checked(text, "here")
    with pytest.raises(MemoryError, match=r"of which 781\.25 KiB are in use"):
        ft.ones(100_000, allocator=text)
    with ft.use(text) as same:
        assert same == ft.get_allocator(array)
    assert resolve.parse(text) != same


def test_texts_wherever_an_allocator_is_taken() -> None:
    ft.install("pool(decay=2)")
    assert repr(ft.get_allocator()) == repr(ft.pool(decay=2))
    assert ft.stats("pool(decay=2)").mapped >= 0
    assert ft.trim("pool(decay=2)") >= 0
    assert ft.empty(3, allocator="aligned(4096)").ctypes.data % 4096 == 0
    assert repr(ft.filled("malloc")) == "filled(malloc())"
    assert repr(resolve.parse("numpy_default")) == "numpy_default()"


@pytest.mark.parametrize("whole", [4096, "4 KiB", np.int64(4096), np.uint8(64)], ids=repr)
def test_numbers_of_every_kind(whole: int) -> None:
    assert ft.aligned(whole).empty(3).ctypes.data % 64 == 0


@pytest.mark.parametrize("wrong", [b"64", [64], 3.5, True, np.True_, ..., ft.malloc(), "\ud800"], ids=repr)
def test_objects_that_are_no_size(wrong: int) -> None:
    with pytest.raises(TypeError, match=r"^alignment=.* is an? .*: give a power of two"):
        ft.aligned(wrong)


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ({"malloc": 0, "free": 1}, ValueError, r"^from_functions\(\) got malloc=0, where no function is$"),
        ({"malloc": 1, "free": 1, "calloc": 0}, ValueError, "calloc=0"),
        ({"malloc": 1, "free": 1, "calloc": -1}, OverflowError, "negative"),
        ({"malloc": 1, "free": 1, "context": 2**64}, OverflowError, "too (big|large)"),
        ({"malloc": print, "free": 1}, TypeError, "malloc"),
    ],
)
def test_addresses_that_are_none(given: dict[str, int], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        ft.allocators.from_functions(**given)


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
