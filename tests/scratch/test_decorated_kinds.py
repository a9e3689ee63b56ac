"""@scratch on every kind of function, and on objects that are not functions."""

import functools
from collections.abc import AsyncIterator, Iterator
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.scratch.arrays import MIDDLE
from tests.scratch.test_decorator import BUFFER, on_scratch

pytestmark = pytest.mark.quick


class Methods:
    """Every kind of function that a class can have."""

    scale = 3

    @ft.scratch
    def plain(self, x: Any) -> Any:
        return x * self.scale

    @classmethod
    @ft.scratch
    def of_class(cls, x: Any) -> Any:
        return x * cls.scale

    @staticmethod
    @ft.scratch(result="copy")
    def static(x: Any) -> Any:
        return x * 3

    @property
    @ft.scratch
    def value(self) -> Any:
        return np.full(MIDDLE, self.scale)

    @functools.cached_property
    @ft.scratch
    def cached(self) -> Any:
        return np.full(MIDDLE, self.scale)

    @ft.scratch(BUFFER)
    def __call__(self, x: Any) -> Any:
        return self.plain(x)


@pytest.mark.parametrize("name", ["plain", "of_class", "static", "__call__"])
def test_methods_of_every_kind(name: str) -> None:
    function = getattr(Methods(), name)
    x = np.ones(MIDDLE)
    for _ in range(3):
        found = function(x)
        assert (found == 3).all()
        assert not on_scratch(found)
    assert BUFFER.used == 0 == ft.default_buffer().used


def test_properties_lambdas_and_partials() -> None:
    methods = Methods()
    assert (methods.value == 3).all()
    assert methods.cached is methods.cached
    assert (Methods.plain(methods, np.ones(MIDDLE)) == 3).all()
    assert (ft.scratch(lambda x: x + 1)(np.ones(MIDDLE)) == 2).all()
    assert (ft.scratch(functools.partial(np.add, 1.0))(np.ones(MIDDLE)) == 2).all()
    negative: Any = np.negative
    assert (ft.scratch(BUFFER)(negative)(np.ones(MIDDLE)) == -1).all()
    assert (ft.scratch(ft.FixedBuffer("1 MiB"))(lambda: np.ones(MIDDLE))() == 1).all()


def numbers() -> Iterator[int]:
    yield 1


async def waits() -> None: ...


async def later() -> AsyncIterator[int]:
    yield 1


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (numbers, "generator numbers.*between its yields.*with scratch"),
        (later, "generator later.*with scratch"),
        (waits, "coroutine waits.*with scratch"),
        (functools.partial(numbers), "generator numbers"),
        (functools.partial(functools.partial(waits)), "coroutine waits"),
        (Methods, "the class Methods"),
        (classmethod(lambda cls: 1), "below @classmethod"),
        (staticmethod(lambda: 1), "below @staticmethod"),
        (5, "not int"),
        ("text", "not str"),
    ],
)
@pytest.mark.parametrize("way", [ft.scratch, ft.scratch(), ft.scratch(escape="warn"), ft.scratch(BUFFER)])
def test_what_can_not_be_decorated_says_what_to_do(way: Any, function: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        way(function)
