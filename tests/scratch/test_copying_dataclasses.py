"""copied(): dataclasses, whatever they allow and forbid."""

import dataclasses
import functools
from typing import Any, ClassVar

import numpy as np
import pytest

from firsttouch.buffers.copying import copied

pytestmark = pytest.mark.quick


def copied_out(result: Any, *args: Any) -> Any:
    return copied(result, args, {}, lambda _: True)


@dataclasses.dataclass
class Plain:
    array: Any
    other: Any = None
    shared: ClassVar[list[int]] = []

    def __post_init__(self) -> None:
        self.made = "by __init__"


@dataclasses.dataclass(frozen=True)
class Frozen:
    array: Any
    other: Any = None


@dataclasses.dataclass(slots=True, frozen=True, weakref_slot=True)
class Slots:
    array: Any
    other: Any = None


@dataclasses.dataclass
class Picky:
    given: dataclasses.InitVar[Any]
    array: Any = dataclasses.field(init=False)
    never: Any = dataclasses.field(init=False)

    def __post_init__(self, given: Any) -> None:
        self.array = given

    def __setattr__(self, name: str, value: Any) -> None:
        if hasattr(self, name):
            raise AttributeError(f"{name} is set once")
        super().__setattr__(name, value)

    @functools.cached_property
    def doubled(self) -> Any:
        return self.array * 2


@pytest.mark.parametrize("kind", [Plain, Frozen, Slots])
def test_a_copy_with_other_arrays(kind: Any) -> None:
    array, other = np.ones(3), [1]
    old = kind(array, other)
    new, again = copied_out((old, [old]))
    assert type(new) is kind
    assert new is not old
    assert again == [new]
    assert again[0] is new
    assert new.other is other
    assert new.array is not array
    assert new.array.tolist() == [1, 1, 1]
    assert old.array is array
    assert vars(new).keys() == vars(old).keys() if kind is not Slots else True


@pytest.mark.parametrize("kind", [Plain, Frozen, Slots])
def test_one_without_arrays_is_itself(kind: Any) -> None:
    old = kind(1, [2])
    assert copied_out(old) is old
    assert copied_out([old, np.ones(1)])[0] is old


def test_what_init_would_refuse() -> None:
    old = Picky(np.ones(3))
    doubled = old.doubled
    new = copied_out(old)
    assert new.array is not old.array
    assert new.doubled is not doubled
    assert new.doubled.tolist() == [2, 2, 2]
    assert not hasattr(new, "never")


def test_a_circle_through_one_that_is_frozen() -> None:
    ring: list[Any] = []
    old = Frozen(np.ones(3), ring)
    ring.append(old)
    new = copied_out(old)
    assert new.other[0] is new
    assert new.array is not old.array


def test_an_argument_that_is_returned_changed() -> None:
    state = Plain(np.ones(3))
    state.array = made = np.zeros(3)
    assert copied_out(state, state) is state
    assert state.array is made


def test_classes_and_exceptions_are_left() -> None:
    @dataclasses.dataclass
    class Failed(Exception):
        array: Any

    failed = Failed(np.ones(3))
    assert copied_out(failed) is failed
    assert copied_out(Plain) is Plain


def test_properties_are_not_asked() -> None:
    @dataclasses.dataclass
    class Lazy:
        array: Any

        @property
        def costly(self) -> Any:
            raise AssertionError

    assert copied_out(Lazy(np.ones(2))).array.tolist() == [1, 1]
