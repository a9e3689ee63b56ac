"""The arguments of ArrayMemory, which are sent as text."""

import pickle
from typing import Any

import pytest

pytest.importorskip("distributed", reason="Dask's distributed is not installed")

import firsttouch as ft
from firsttouch.dask import ArrayMemory


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"allocator": 5}, TypeError, "not int: 5"),
        ({"allocator": ft.pool}, TypeError, "did you mean firsttouch.pool()?"),
        ({"limit": "4 GiB"}, ValueError, "limited(pool(), '4 GiB')"),
    ],
)
def test_a_mistake_is_named_at_once(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error) as raised:
        ArrayMemory(**arguments)
    assert words in str(raised.value)


def test_it_travels_as_text() -> None:
    given = ArrayMemory(ft.limited(ft.pool(), "1 GiB"), limit="auto")
    there = pickle.loads(pickle.dumps(given))
    assert repr(there) == repr(given)
    assert repr(ArrayMemory(limit="auto")) == "ArrayMemory(limit='auto')"
    assert f"limited({ft.pool()!r}, '1 GiB')" in repr(there)
