"""Kinds of default buffers, and the requirements on custom scratch memory."""

import functools
from typing import Any

import pytest

from firsttouch.buffers.kinds import METHODS, OwnScratch, checked_kind, checked_own, is_own

pytestmark = pytest.mark.quick


class Own:
    def allocate(self, nbytes: int, alignment: int) -> int:
        return 0

    def mark(self) -> int:
        return 0

    def rewind(self, mark: int) -> None: ...


class Growing:
    """Stands for a buffer of firsttouch's."""

    def __init__(self, chunk_size: int = 1) -> None: ...


KNOWN: dict[str, Any] = {"growing": Growing, "fixed": Own}


def test_methods_and_functions_alike() -> None:
    class Holds:
        pass

    plain: Any = Holds()
    plain.allocate = lambda nbytes, alignment: 0
    plain.mark = lambda: 0
    plain.rewind = print
    for good in (Own(), plain):
        assert checked_own(good, "scratch()") is good
        assert is_own(good)
        assert isinstance(good, OwnScratch)
    for other in (None, 1, "text", object(), Growing(), Own):
        assert not is_own(other)


@pytest.mark.parametrize("lacking", METHODS)
def test_what_is_missing_is_named(lacking: str) -> None:
    broken = type("Broken", (), {name: vars(Own)[name] for name in METHODS if name != lacking})()
    with pytest.raises(TypeError, match=rf"scratch\(\) got Broken, which has no {lacking}\(\): .*rewind\(mark\)"):
        checked_own(broken, "scratch()")


def test_two_that_are_missing() -> None:
    class Marks:
        mark = Own.mark
        rewind = 5

    with pytest.raises(TypeError, match=r"has no allocate\(\) and rewind\(\)"):
        checked_own(Marks(), "scratch()")
    with pytest.raises(TypeError, match=r"got int, which has no allocate\(\), mark\(\) and rewind\(\)"):
        checked_own(5, "scratch()")


def test_a_method_that_can_not_be_called_as_it_will_be() -> None:
    class Bytes(Own):
        def allocate(self, nbytes: int) -> int:  # type: ignore[override]
            return 0

    with pytest.raises(TypeError, match=r"whose allocate cannot be called as allocate\(nbytes, alignment\)"):
        checked_own(Bytes(), "scratch()")


def test_a_class_in_place_of_an_object() -> None:
    with pytest.raises(TypeError, match=r"got the class Own, not an object of it: did you mean Own\(\)\?"):
        checked_own(Own, "scratch()")
    with pytest.raises(TypeError, match=r"got the class int, not an object of it: custom scratch memory"):
        checked_own(int, "scratch()")


def test_kinds_by_name_by_class_and_of_ones_own() -> None:
    def mine() -> Own:
        return Own()

    assert checked_kind(None, KNOWN, "default_buffer()") == ("growing", Growing)
    assert checked_kind("fixed", KNOWN, "default_buffer()") == ("fixed", Own)
    assert checked_kind(Growing, KNOWN, "default_buffer()") == ("growing", Growing)
    for kind in (mine, functools.partial(Growing, 5), lambda: Own()):
        key, make = checked_kind(kind, KNOWN, "default_buffer()")
        assert key is make is kind


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        ("large", ValueError, "kind='large': give 'growing' or 'fixed'"),
        (5, TypeError, "kind=5 is int: give 'growing' or 'fixed', or a class"),
        (Own(), TypeError, r"is Own: give .*; that object itself goes to scratch\(\) or using_buffer\(\)"),
        (lambda size: None, TypeError, "cannot be called without arguments"),
        (type("Unhashable", (), {"__call__": lambda self: 1, "__hash__": None})(), TypeError, "cannot be hashed"),
    ],
    ids=["name", "number", "object", "arguments", "hash"],
)
def test_everything_else_is_refused_in_words(kind: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        checked_kind(kind, KNOWN, "default_buffer()")
