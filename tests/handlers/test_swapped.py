"""Law 4 for arrays that exchanged their data but not their handlers: each block is its owner's.

The random programs of tests/trust exchange the data of arrays of any two allocators.
"""

from tests.programs import run

PROLOGUE = """
import contextlib, ctypes, gc
import numpy as np
import firsttouch as ft

def data(array):  # the first field of an array, behind the object's own
    return ctypes.c_void_p.from_address(id(array) + object.__basicsize__)

def swap(one, other):  # as f2py's intent(inplace) did before numpy#29929
    data(one).value, data(other).value = data(other).value, data(one).value
"""


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
                with contextlib.suppress(MemoryError):  # who is gone resizes nothing
                    plain.resize(2 * n, refcheck=False)
                assert (plain[:n] == 7).all() and not plain[n:].any()
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
