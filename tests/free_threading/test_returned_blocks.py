"""Blocks that come back to an allocator whose `deallocate` makes arrays on the same allocator."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

import firsttouch as ft
from firsttouch import _firsttouch
from tests.trust.expressions import Own

pytestmark = pytest.mark.quick


class Feeding(Own):
    """Each of the first blocks that come back makes another one."""

    deepest = depth = 0
    left = 300

    def deallocate(self, address: int, nbytes: int) -> None:
        super().deallocate(address, nbytes)
        self.depth += 1
        self.deepest = max(self.deepest, self.depth)
        if self.left > 0:
            self.left -= 1
            ft.empty(4000, allocator=self)
        self.depth -= 1


def test_deliveries_are_not_nested() -> None:
    own = Feeding()
    ft.empty(4000, allocator=own)
    for _ in range(4):
        _firsttouch.deliver()
    assert own.deepest == 1
    assert own.left == 0
    assert own.kept == {}


def test_every_thread_delivers() -> None:
    own = Own()
    together = threading.Barrier(4)

    def work() -> None:
        together.wait()
        for _ in range(200):
            ft.empty(4000, allocator=own)

    with ThreadPoolExecutor(4) as executor:
        list(executor.map(lambda _: work(), range(4)))
    _firsttouch.deliver()
    assert own.kept == {}
