"""Kernels and containers that lack a source: less is known, and reported as unknown."""

import numpy as np
import pytest

import firsttouch as ft
from firsttouch import _firsttouch
from tests.programs import run
from tests.sight.conftest import PAGE, fresh

pytestmark = pytest.mark.quick

NAMES = ["scan_pages", "open_pages", "nodes_of_pages", "resident", "only_node"]


def some() -> np.ndarray:
    array = fresh(300)
    int(array[: 100 * PAGE].sum())
    array[: 200 * PAGE : 2 * PAGE] = 1
    return array


def test_where_memory_is_out_a_large_array_is_looked_at_in_parts() -> None:
    program = """
        from firsttouch import _firsttouch
        array = ft.pages().ones(256 << 20, "u1")  # whose nodes do not fit into what Rust has in reserve
        right = ft.inspect(array).nodes
        _firsttouch.fail_calls(["only_node"])
        for first in range(1, 10):
            _firsttouch.fail_allocation(first, True)
            try:
                found = ft.inspect(array).nodes
            except MemoryError:
                found = right
            _firsttouch.fail_allocation(0, False)
            assert found == right, found
        """
    assert run(program) == ""


def test_nothing_works() -> None:
    array = some()
    _firsttouch.fail_calls(NAMES)
    found = ft.inspect(array)
    assert found.absent is None
    assert found.nodes is None
    assert (ft.inspection.pagemap(array).states == ft.inspection.PageState.UNKNOWN).all()
    assert found.is_backed is None


def test_an_ordinary_user_sees_it_all() -> None:
    run("""
        from tests.sight.test_inspection import FIGURES
        import os
        ft.inspect(np.zeros(1))  # imports it: nobody else may read this Python
        if os.geteuid() == 0:
            os.setgroups([]); os.setresgid(65534, 65534, 65534); os.setresuid(65534, 65534, 65534)
            import ctypes
            assert ctypes.CDLL(None).prctl(4, 1, 0, 0, 0) == 0  # as after an exec
        a = np.zeros(1 << 22)
        a[: 1 << 21] = 1
        found = ft.inspect(a)._asdict()
        assert None not in [found[name] for name in [*FIGURES, "nodes"]], found
    """)
