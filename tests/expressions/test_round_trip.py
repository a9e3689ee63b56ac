"""The repr of every allocator but those on C functions is an expression that creates one with the same repr."""

import contextlib

import pytest

import firsttouch as ft
from firsttouch._internal import resolve

pytest.importorskip("hypothesis", reason="not in every lock")
from hypothesis import given, settings
from hypothesis import strategies as st

sizes = st.integers(1, 2**40)
bytes_or_none = st.none() | st.integers(0, 255)
sources = [
    st.builds(ft.pages, st.sampled_from([False, "thp"])),
    st.builds(ft.malloc),
    st.builds(ft.calloc),
    st.builds(ft.aligned, st.integers(0, 30).map(lambda power: 2**power)),
    st.builds(ft.mimalloc),
    st.builds(ft.guarded, side=st.sampled_from(["after", "before"]), keep=sizes),
]
with contextlib.suppress(ft.process.UnsupportedError):  # where it is not built
    ft.jemalloc()
    sources.append(st.builds(ft.jemalloc))


def over(upstreams: st.SearchStrategy[ft.Allocator]) -> st.SearchStrategy[ft.Allocator]:
    times = st.none() | st.floats(0, 1e9)
    return st.one_of(
        st.builds(ft.pool, upstreams, max_idle=st.none() | sizes, decay=times),
        st.builds(ft.limited, upstreams, sizes),
        st.builds(ft.filled, upstreams, on_allocate=bytes_or_none, on_free=bytes_or_none),
    )


stacks = st.recursive(st.one_of(sources), over, max_leaves=6)


@given(stacks)
@settings(max_examples=150, deadline=None)
def test_repr_parses_back(allocator: ft.Allocator) -> None:
    text = repr(allocator)
    assert repr(resolve.parse(text)) == text
    assert repr(resolve.parse(f"ft.{text}")) == text
