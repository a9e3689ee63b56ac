"""``None`` is the current allocator, wherever an allocator is expected; ``"process"`` is the process's own."""

import numpy as np
import pytest

import firsttouch as ft


def test_none_is_the_current_allocator() -> None:
    with ft.use(ft.pool()) as pool:
        a = ft.zeros((1000, 1000))
        assert ft.stats(None).in_use == ft.stats(pool).in_use == a.nbytes
        with ft.use(None) as same:
            assert same == pool
            assert ft.get_allocator(ft.empty(100000, allocator=None)) == pool
        del a
        assert ft.trim(None) >= 8_000_000
        assert ft.stats(None).idle == 0


def test_none_installs_what_is_current() -> None:
    with ft.use(ft.pool(decay=7.0)) as pool:
        ft.install(None)
    try:
        assert ft.get_allocator(np.empty(100000)) == pool
    finally:
        ft.uninstall()


def test_none_where_nothing_was_chosen_is_numpys() -> None:
    assert ft.stats(None).allocations == 0
    with ft.use(None) as numpys:
        assert repr(numpys) == "numpy_default()"
        assert repr(ft.get_allocator(np.empty(100000))) == "numpy_default()"


@pytest.mark.parametrize("name", ["stats", "trim"])
def test_the_process_is_the_default(name: str) -> None:
    function = getattr(ft, name)
    with ft.use(ft.pool()):
        assert type(function()) is type(function("process"))
        a = ft.zeros((1000, 1000))
        assert ft.stats("process").in_use != a.nbytes
