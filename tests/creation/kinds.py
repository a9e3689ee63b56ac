"""Calls of every constructor, valid for NumPy and firsttouch, and the properties that must agree."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import firsttouch as ft

FUNCTIONS = sorted(ft.arrays.__all__)

ALLOCATORS: dict[str, Callable[[], ft.Allocator]] = {
    "pool": ft.pool,
    "calloc": ft.calloc,
    "aligned": lambda: ft.aligned(4096),
    "scratch": lambda: ft.FixedBuffer("64 MiB"),
}

RECORD = np.dtype([("a", "i4"), ("b", "f8", (2, 3)), ("c", object), ("d", [("e", "u1")])], align=True)
DTYPES: list[Any] = [
    *"?bBhHiIlLqQefdgFDG",
    ">i4",
    "<f8",
    "S0",
    "S7",
    "U0",
    "U5",
    "V0",
    "V9",
    object,
    "M8[ns]",
    "m8[D]",
    "M8",
    np.dtypes.StringDType(),
    np.dtypes.StringDType(na_object=None),
    RECORD,
    np.dtype((np.int16, (2, 2))),
    np.dtype({"names": ["x", "y"], "formats": ["u1", "f4"], "offsets": [7, 1], "itemsize": 13}),
]
SHAPES: list[Any] = [(), 0, 1, 7, (3, 4), (2, 0, 5), (1,) * 64, [2, 3], np.int64(4), np.array([2, 2]), (5000,)]
ORDERS = ["C", "F", "A", "K"]


def calls(name: str) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
    """Arguments that NumPy's function of this name takes."""
    if name in ("empty", "zeros", "ones"):
        yield from (((shape, dtype), {}) for shape in SHAPES for dtype in (None, "f4", RECORD))
        yield from (((3,), {"dtype": dtype, "order": order}) for dtype in DTYPES for order in "CF")
        yield from (((shape,), {"order": order, "device": "cpu"}) for shape in SHAPES for order in "CF")
    elif name == "full":
        yield from (((shape, 3), {"order": order}) for shape in SHAPES for order in "CF")
        yield from (((4, 0), {"dtype": dtype}) for dtype in "?bHifdF")
        for value in (True, 1j, "text", b"bytes", None, [1, 2, 3], np.datetime64("2001-02-03"), 2**70):
            yield ((2, 3), value), {}
    elif name.endswith("_like"):
        fill: tuple[Any, ...] = (5,) if name == "full_like" else ()
        for prototype in prototypes():
            yield (prototype, *fill), {}
            yield from (((prototype, *fill), {"order": order, "dtype": "i2"}) for order in ORDERS)
            yield (prototype, *fill), {"shape": (3, 2), "subok": False}
    elif name == "array":
        for prototype in [*prototypes(), [[1, 2], [3, 4]], 3.5, "text", (1, 2), range(5)]:
            yield (prototype,), {}
            yield from (((prototype,), {"order": order}) for order in ORDERS)
        yield ([1, 2],), {"ndmin": 3, "dtype": object}
        yield (np.matrix([[1, 2]]),), {"subok": True}
        yield from ((([1, 2, 3],), {"dtype": dtype}) for dtype in "?bHifdFSUO")


def prototypes() -> list[Any]:
    """Arrays of many kinds and layouts, a subclass and a number among them."""
    base = np.arange(24.0).reshape(2, 3, 4)
    record = np.zeros((2, 2), RECORD)
    return [
        base,
        base.T,
        base[:, ::2, ::-1],
        np.asfortranarray(base),
        base.transpose(1, 0, 2),
        np.broadcast_to(np.arange(3), (4, 3)),
        np.array(7),
        np.zeros((0, 3)),
        record,
        record["b"][:, 0],
        np.array([["a", None], [1, {}]], object),
        np.array(["x", "much longer than a small string"], np.dtypes.StringDType()),
        np.array(["a", "bc"]),
        np.ma.masked_array([1, 2, 3], [False, True, False]),
        np.matrix([[1, 2], [3, 4]]),
    ]


def undefined(name: str, array: Any) -> bool:
    """Whether the items are anything: those of `empty` that hold no references."""
    return name in ("empty", "empty_like") and not array.dtype.hasobject and array.dtype.char != "T"


def assert_alike(found: Any, expected: Any, name: str) -> None:
    """Type, dtype, layout, flags and items are the same."""
    assert type(found) is type(expected)
    if not isinstance(expected, np.ndarray):
        assert found == expected
        return
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.strides == expected.strides
    ours, theirs = found.flags, expected.flags
    flags: Any = "CFWAO"
    assert {flag: ours[flag] for flag in flags} == {flag: theirs[flag] for flag in flags}
    if not undefined(name, expected):
        # NumPy has no words for a record's array in the 64th dimension, nor for dates without a unit.
        assert expected.ndim > 60 or expected.dtype == "M8" or repr(found) == repr(expected)
        assert expected.dtype.kind == "V" or np.array_equal(found, expected)
