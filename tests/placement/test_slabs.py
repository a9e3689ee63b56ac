"""Slabs along an axis at creation: the axis is announced before the memory is allocated, and respected."""

from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from firsttouch._constructing import _expected, axis_of
from tests.placement import granted

pytestmark = pytest.mark.quick

BASE = np.arange(2 * 3 * 4, dtype=np.int16).reshape(2, 3, 4)
#: Constructors and arguments whose shape and order are known before they run.
KNOWN: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("zeros", ((3, 4, 5),), {}),
    ("empty", ((3, 4), np.float32, "F"), {}),
    ("ones", (), {"shape": [3, 4], "order": "F", "dtype": "i2"}),
    ("zeros", ((3, 1, 5),), {"order": "f"}),
    ("full", ((2, 3), 7), {"dtype": complex, "order": "F"}),
    ("empty_like", (BASE,), {}),
    ("zeros_like", (BASE.transpose(1, 2, 0),), {}),
    ("ones_like", (BASE[:, ::2, ::-1],), {}),
    ("ones_like", (BASE.swapaxes(0, 1),), {"order": "C"}),
    ("full_like", (BASE.swapaxes(1, 2), 3), {"shape": (4, 5)}),
    ("full_like", (BASE,), {"fill_value": 3, "subok": False}),
    ("array", (BASE.T, float), {"order": "C"}),
    ("zeros", ((3, 4), "2f8"), {}),
]


@pytest.mark.parametrize(("name", "arguments", "named"), KNOWN, ids=str)
def test_what_is_stated_beforehand_is_so(name: str, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
    plain = getattr(np, name)(*arguments, **named)
    for axis in range(-plain.ndim, plain.ndim):
        stated = _expected(getattr(np, name), arguments, named, axis)
        assert stated == (plain.nbytes, *axis_of(plain, axis))
        made = getattr(ft, name)(*arguments, **named, allocator=ft.numa(f"blocked:{axis}", strict=True))
        assert (made.shape, made.strides, made.dtype) == (plain.shape, plain.strides, plain.dtype)
        if name != "empty" and name != "empty_like":
            assert (made == plain).all()
        receipt = granted(made)
        assert receipt.why_not == ()


@pytest.mark.parametrize(
    "call",
    [
        lambda allocator: ft.array([[1] * 4096] * 4, allocator=allocator),
        lambda allocator: ft.zeros((64, 64), "2f8", allocator=allocator),
        lambda allocator: ft.array(np.ones((64, 64)), ndmin=5, allocator=allocator),
    ],
)
def test_what_is_known_afterwards_is_put_right(call: Any) -> None:
    made = call(ft.numa("blocked:-1"))
    receipt = granted(made)
    assert receipt.why_not == ()


def test_arrays_without_that_axis_are_refused() -> None:
    for allocator, shape in (("blocked:1", 7), ("blocked:2", (3, 4)), ("blocked:-3", (3, 4)), ("blocked:1", ())):
        with pytest.raises(ValueError, match=rf"{allocator}: the array has \d ax[ie]s"):
            ft.zeros(shape, allocator=ft.numa(allocator))
    with pytest.raises(ValueError, match="blocked:1: the array has 1 axis"):
        ft.array(range(10), allocator=ft.numa("blocked:1"))
    assert ft.numa("blocked:0").full((), 7) == 7
    assert ft.numa("blocked:-1").zeros((0, 3)).shape == (0, 3)
    with pytest.raises(ValueError, match="negative dimensions"):
        ft.numa("blocked:1").zeros((3, -4))


def test_where_bytes_alone_are_known_the_receipt_says_so() -> None:
    for text, why_not in (
        ("blocked:0", ()),
        ("blocked:1", ("numa: the array's axes are not known here, so the slabs are of bytes",)),
    ):
        with ft.use(ft.numa(text)):
            receipt = granted(np.zeros((64, 1024)))
            assert receipt.why_not == why_not
            ours = granted(ft.zeros((64, 1024)))
            assert ours.why_not == ()
    with ft.use(ft.numa("blocked:1", strict=True)), pytest.raises(MemoryError):
        np.zeros((64, 1024))
    failure = ft.last_failure()
    assert failure is not None
    assert "the array's axes are not known here" in str(failure)


def test_what_is_stated_ends_with_the_constructor() -> None:
    allocator = ft.numa("blocked:1")
    with pytest.raises(TypeError):
        ft.full((2, 4096), object, dtype=float, allocator=allocator)  # fails after its memory was had
    with ft.use(allocator):
        receipt = ft.receipt(np.empty((2, 4096)))
    assert receipt is not None
    assert receipt.why_not
