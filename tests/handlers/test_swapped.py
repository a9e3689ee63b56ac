"""Law 4 for arrays that exchanged their data but not their handlers: each block is freed by its owner."""

import sys

import pytest

from tests.programs import run

MAKERS = {
    "plain": "np.empty(n, 'u1')",
    "pool": "pool.empty(n, 'u1')",
    "used": "used(pool, n)",
    "used filled": "used(filled, n)",
    "over filled": "ft.limited(filled, '1 GiB').empty(n, 'u1')",
    "limited": "ft.empty(n, 'u1', allocator='limited(malloc(), 1073741824)')",
    "guarded": "ft.empty(n, 'u1', allocator='guarded()')",
    "filled": "filled.empty(n, 'u1')",
    "calloc": "ft.calloc().empty(n, 'u1')",
    "used calloc": "used(ft.calloc(), n)",
    "filled calloc": "ft.empty(n, 'u1', allocator='filled(calloc())')",
    "malloc": "ft.malloc().empty(n, 'u1')",
    "numpy's": "ft.numpy_default().empty(n, 'u1')",
    "used numpy's": "used(ft.numpy_default(), n)",
    "aligned": "ft.empty(n, 'u1', allocator='aligned(4096)')",
    "placed": "ft.pages(populate=True).empty(n, 'u1')",
    "mimalloc": "ft.empty(n, 'u1', allocator='mimalloc()')",
    **({} if sys.platform == "win32" else {"jemalloc": "ft.empty(n, 'u1', allocator='jemalloc()')"}),
    "scratch": "scratched(n)",
    "scratch method": "scratched(n, by_method=True)",
}

PROLOGUE = """
import gc
import numpy as np
import firsttouch as ft
from tests.handlers.swapped import swap

gc.freeze()  # what is there by now is not looked at again
pool = ft.pool()
filled = ft.filled(ft.pool())

def used(allocator, n):
    with ft.use(allocator):
        return np.empty(n, 'u1')

def scratched(n, by_method=False):
    with ft.scratch() as scope:
        return scope.empty(n, 'u1') if by_method else np.empty(n, 'u1')

def check(make_one, make_other):
    for n in (64, 2000, 20_000, 300_000, 5_000_000):
        for first in (True, False):
            one, other = make_one(n), make_other(n)
            one[:], other[:] = 1, 2
            swap(one, other)
            assert one[0] == one[-1] == 2 and other[0] == other[-1] == 1
            if first:
                del one
                assert other[0] == other[-1] == 1
                other.resize(2 * n, refcheck=False)
                assert other[0] == other[n - 1] == 1
                del other
            else:
                del other
                one.resize(n // 2, refcheck=False)
                assert one[0] == one[-1] == 2
                del one
            gc.collect()
"""


#: Wine takes seconds to start a process.
ONES = ["used", "numpy's", "guarded", "calloc", "scratch"] if sys.platform == "win32" else MAKERS


@pytest.mark.parametrize("one", ONES)
def test_each_block_goes_back_to_who_made_it(one: str) -> None:
    others = "\n".join(f"check(lambda n: {MAKERS[one]}, lambda n: {make})" for make in MAKERS.values())
    run(others, prologue=PROLOGUE)


def test_a_block_outlives_its_allocators_last_array() -> None:
    run(
        """
        for make in (ft.pool, lambda: ft.filled(ft.pool()), lambda: ft.guarded()):
            for n in (20_000, 3_000_000):
                allocator = make()
                ours, plain = allocator.full(n, 7, 'u1'), np.ones(n, 'u1')
                swap(ours, plain)
                del ours, allocator
                gc.collect()
                ft.trim()
                assert (plain == 7).all()
                del plain
        """,
        prologue=PROLOGUE,
    )


def test_the_allocator_that_is_named_made_the_block() -> None:
    run(
        """
        for n in (100, 20_000, 3_000_000):
            one, other = ft.filled(ft.pool()), ft.guarded()
            a, b = one.empty(n, 'u1'), other.empty(n, 'u1')
            swap(a, b)
            assert (ft.get_allocator(a), ft.get_allocator(b)) == (other, one)
            c, d = ft.calloc().empty(n, 'u1'), ft.numpy_default().empty(n, 'u1')
            swap(a, c)
            swap(b, d)
            assert (ft.get_allocator(a), ft.get_allocator(c), ft.get_allocator(d)) == (ft.calloc(), other, one)
        """,
        prologue=PROLOGUE,
    )
