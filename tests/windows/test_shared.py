"""Shared arrays on sections, which other processes find by their names."""

import multiprocessing
import sys

import pytest

import firsttouch as ft
from tests.shared import work

pytestmark = pytest.mark.skipif(sys.platform != "win32", reason="of Windows")


def test_spawned_processes_map_the_same_memory() -> None:
    a = ft.shared((100, 100))
    a[...] = 3
    read_only = a[5:]
    read_only.flags.writeable = False
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(work.write, (a, 42.0)) == ("ndarray", True, 3)
        assert a[0, 0] == 42
        assert pool.map(work.total, [a[1], a[2:4], a[:, 5]]) == [300, 600, 300]
        with pytest.raises(ValueError, match="read-only"):
            pool.apply(work.write, (read_only, 1.0))
        made = pool.apply(work.made, (1000,))  # who made it has let it go by now
    assert made.sum() == 499_500
