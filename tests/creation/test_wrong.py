"""What NumPy rejects is rejected with NumPy's message; if there is no memory, our reason follows."""

import pickle
from typing import Any

import numpy as np
import pytest

import firsttouch as ft

pytestmark = pytest.mark.quick

BY_SHAPE = ["empty", "zeros", "ones"]
SHAPES: list[Any] = [
    -1,
    (3, -2),
    (-1, 0),
    2**70,
    (2**40, 2**40),
    (2**62,),
    (2**31, 2**31, 2),
    (0, 2**62, 2**62),
    (1,) * 65,
    "text",
    3.5,
    (2.0, 3),
    None,
    [[1, 2]],
    (None,),
    np.float64(3),
]


def error(function: Any, *arguments: Any, **named: Any) -> BaseException | None:
    try:
        function(*arguments, **named)
    except Exception as found:
        return found
    return None


def assert_same(ours: BaseException | None, numpys: BaseException | None) -> None:
    assert isinstance(ours, MemoryError if isinstance(numpys, MemoryError) else type(numpys))
    if isinstance(numpys, MemoryError):
        assert str(ours).startswith(f"{numpys}: ")
    else:
        assert type(ours) is type(numpys)
        assert str(ours) == str(numpys)


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: repr(shape)[:25])
@pytest.mark.parametrize("name", BY_SHAPE)
def test_shapes(name: str, shape: Any) -> None:
    numpys = error(getattr(np, name), shape)
    for allocator in (ft.pool(), ft.malloc(), ft.aligned(4096)):
        assert_same(error(getattr(ft, name), shape, allocator=allocator), numpys)
        assert_same(error(getattr(allocator, name), shape), numpys)
        assert_same(error(getattr(allocator, name), shape, "u1"), error(getattr(np, name), shape, "u1"))


def test_no_memory_says_what_was_asked_what_there_is_and_why() -> None:
    allocator = ft.limited(ft.pool(), "1 MiB")
    kept = allocator.ones(10_000)
    with pytest.raises(MemoryError) as found:
        allocator.ones((1000, 1000))
    said = str(found.value)
    assert said.startswith("Unable to allocate 7.63 MiB for an array with shape (1000, 1000) and data type float64: ")
    assert "cannot allocate 7.63 MiB: limited() allows 1 MiB, of which 78.13 KiB are in use" in said
    cause = found.value.__cause__
    assert isinstance(cause, MemoryError)
    assert said.startswith(str(cause))
    assert str(pickle.loads(pickle.dumps(found.value))) == said
    assert kept.sum() == 10_000
    assert allocator.ones(10_000).sum() == 10_000
