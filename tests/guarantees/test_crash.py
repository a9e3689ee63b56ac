"""Crash: see the page."""

import pickle
import random
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.programs import run, start

pytestmark = pytest.mark.quick


def test_freeing_an_array_needs_no_memory() -> None:
    run("""
        import resource
        for text in ("pool(decay=None)", "mimalloc()", "jemalloc()", "tracked()", "guarded()", "filled(on_free=1)"):
            ft.install(text)
            arrays = [np.ones(20_000 + 4099 * n, np.uint8) for n in range(150)]
            before = resource.getrlimit(resource.RLIMIT_AS)
            resource.setrlimit(resource.RLIMIT_AS, (probe.status("VmSize"), before[1]))
            while len(arrays) > 1:
                arrays.pop(len(arrays) * 7 % len(arrays) if len(arrays) % 2 else 0)
            arrays.clear()
            resource.setrlimit(resource.RLIMIT_AS, before)
            assert np.ones(1 << 20, np.uint8).all()
    """)


def test_a_malformed_handle_of_a_shared_array_is_a_sharedarrayerror() -> None:
    array = ft.shared(1000)
    pickled: Any = array.__reduce_ex__(5)
    remake, good = pickled[0], list(pickled[1])
    assert len(good) == 7
    wrong: list[Any] = [None, "import os", -1, 2**62, b"\0" * 100, (), object(), [1, 2], 1e300]
    dice = random.Random(3)
    for _ in range(200):
        forged = list(good)
        forged[dice.choice([0, 1, 2, 3, 4, 5])] = dice.choice(wrong)
        try:
            found = remake(*forged)
        except (ft.sharing.SharedArrayError, MemoryError):
            continue
        assert isinstance(found, np.ndarray)
        assert np.shares_memory(found, found)
    assert pickle.loads(pickle.dumps(array)).size == 1000


def test_a_write_beyond_an_array_stops_the_program_under_guarded() -> None:
    finished = start("""
        import ctypes
        array = ft.guarded().empty(8192, np.uint8)
        ctypes.memset(array.ctypes.data, 1, 8192)
        print("so far", flush=True)
        ctypes.memset(array.ctypes.data, 1, 8193)
        print("too far", flush=True)
    """)
    assert finished.stdout == "so far\n"
    assert finished.returncode < 0


def test_a_block_whose_allocator_is_gone_is_never_given_to_another_array() -> None:
    """An array on memory that another array owns keeps it, whoever made either, and whatever was dropped since."""
    view = ft.pool().ones(1 << 20, np.uint8)[5:]
    others = [ft.pool().zeros(1 << 20, np.uint8) for _ in range(20)]
    ft.trim()
    assert view.all()
    assert not any(np.shares_memory(view, other) for other in others)
