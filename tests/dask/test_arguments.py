"""The arguments of ArrayMemory: errors are found in the client; the values are sent as text."""

import pickle
from typing import Any

import pytest

pytest.importorskip("distributed", reason="Dask's distributed is not installed")

import dask.config

import firsttouch as ft
from firsttouch.dask import ArrayMemory


class Own:
    def allocate(self, nbytes: int, alignment: int, zeroed: bool) -> int:
        raise MemoryError

    def deallocate(self, address: int, nbytes: int) -> None: ...


@pytest.mark.parametrize(
    ("arguments", "error", "words"),
    [
        ({"allocator": 5}, TypeError, "not int: 5"),
        ({"allocator": "poool()"}, ValueError, "did you mean pool?"),
        ({"allocator": Own()}, TypeError, "allocators travel as their expression"),
        ({"allocator": ft.allocators.from_functions(malloc=1, free=2)}, ValueError, "addresses are meaningless there"),
        ({"allocator": ft.numpy_default()}, ValueError, "without the plugin"),
        ({"limit": 1.5}, ValueError, "at most 1.0"),
        ({"limit": "much"}, ValueError, "is not a size"),
    ],
)
def test_a_mistake_is_named_at_once(arguments: dict[str, Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error) as raised:
        ArrayMemory(**arguments)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)


def test_it_travels_as_text() -> None:
    given = ArrayMemory(ft.limited(ft.pool(), "1 GiB"), limit=0.5)
    there = pickle.loads(pickle.dumps(given))
    assert repr(there) == repr(given)
    assert f"limited({ft.pool()!r}, '1 GiB')" in repr(there)


def test_nodes_and_sizes_that_only_workers_have_are_no_mistake() -> None:
    assert "bind:7" in repr(ArrayMemory("pool(pages(numa='bind:7'))"))


def test_the_settings_of_dask() -> None:
    with dask.config.set({"firsttouch": {"allocator": "pool()", "limit": "1 GiB"}}):
        assert repr(ArrayMemory.configured()) == "ArrayMemory(allocator='pool()', limit=1073741824)"
    assert repr(ArrayMemory.configured()) == "ArrayMemory()"
    with dask.config.set({"firsttouch.alocator": "pool()"}), pytest.raises(ValueError, match=r"firsttouch\.alocator"):
        ArrayMemory.configured()
    with (
        dask.config.set({"firsttouch.limit": 1.5}),
        pytest.raises(ValueError, match="settings of firsttouch: limit"),
    ):
        ArrayMemory.configured()
