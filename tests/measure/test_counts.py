"""measure() counts the arrays created in a block exactly, whichever allocator serves them."""

import contextlib
from collections.abc import Iterator

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import KIB, MIB
from tests.programs import run

pytestmark = pytest.mark.quick

SERVED = {
    "NumPy": None,
    "pool": "pool()",
    "limited": 'limited(pool(), "1 GiB")',
    "pages": "pages()",
    "malloc": "malloc()",
    "filled": "filled(malloc())",
}


@pytest.fixture(params=SERVED, ids=list(SERVED))
def _served(request: pytest.FixtureRequest) -> Iterator[None]:
    expression = SERVED[request.param]
    with contextlib.nullcontext() if expression is None else ft.use(expression):
        yield


@pytest.mark.usefixtures("_served")
class TestWhoeverServes:
    def test_what_came_and_went(self) -> None:
        before = np.ones(2 * MIB, np.uint8)
        with ft.measure() as m:
            a = np.ones(3 * MIB, np.uint8)
            del before
            b = np.zeros(5 * MIB + 1, np.uint8)
            assert (m.allocated, m.arrays, m.kept) == (8 * MIB + 1, 2, 8 * MIB + 1)
            del a
            c = np.empty(MIB, np.uint8)
        assert (m.allocated, m.arrays, m.largest) == (9 * MIB + 1, 3, 5 * MIB + 1)
        assert (m.peak, m.kept, m.kept_arrays) == (8 * MIB + 1, 6 * MIB + 1, 2)
        del b, c
        assert (m.peak, m.kept) == (8 * MIB + 1, 6 * MIB + 1)  # as it was at the end

    def test_small_arrays_do_not_count(self) -> None:
        with ft.measure() as m:
            kept = [np.ones(16 * KIB - 1, np.uint8) for _ in range(10)]
        assert (len(kept), m.arrays, m.peak) == (10, 0, 0)

    def test_an_array_that_changes_its_size(self) -> None:
        with ft.measure() as m:
            a = np.ones(MIB, np.uint8)
            a.resize(3 * MIB, refcheck=False)
            assert (m.allocated, m.arrays, m.kept) == (3 * MIB, 1, 3 * MIB)
            a.resize(2 * MIB, refcheck=False)
            assert (m.allocated, m.kept, m.peak) == (3 * MIB, 2 * MIB, 3 * MIB)
            a.resize(100, refcheck=False)
            assert (m.kept, m.kept_arrays) == (0, 0)
            a.resize(MIB, refcheck=False)
            assert (m.kept, m.kept_arrays, m.arrays) == (MIB, 1, 2)
            del a
        assert (m.kept, m.kept_arrays, m.allocated) == (0, 0, 4 * MIB)

    def test_blocks_nest_each_with_its_own_peak(self) -> None:
        with ft.measure() as outer:
            a = np.ones(4 * MIB, np.uint8)
            with ft.measure() as first:
                b = np.ones(MIB, np.uint8)
                del a
            with ft.measure() as second:
                del b
                c = np.ones(2 * MIB, np.uint8)
        assert (outer.allocated, outer.peak, outer.kept) == (7 * MIB, 5 * MIB, 2 * MIB)
        assert (first.allocated, first.peak, first.kept) == (MIB, MIB, MIB)
        assert (second.allocated, second.peak, second.kept) == (2 * MIB, 2 * MIB, 2 * MIB)
        del c

    def test_our_constructors_count_too(self) -> None:
        with ft.measure() as m:
            arrays = [ft.zeros(MIB, np.uint8), ft.ones(MIB, np.uint8), ft.pool().empty(MIB, np.uint8)]
        assert (len(arrays), m.arrays, m.allocated) == (3, 3, 3 * MIB)

    def test_scratch_memory_counts_too(self) -> None:
        with ft.measure() as m:
            for _ in range(3):
                with ft.scratch():
                    x = np.ones(100 * KIB, np.uint8)
                    del x
        assert (m.arrays, m.peak, m.kept) == (3, 100 * KIB, 0)

    def test_blocks_that_end_out_of_order(self) -> None:
        first, second = ft.measure(), ft.measure()
        one = first.__enter__()
        a = np.ones(MIB, np.uint8)
        two = second.__enter__()
        b = np.ones(2 * MIB, np.uint8)
        first.__exit__(None, None, None)
        c = np.ones(4 * MIB, np.uint8)
        second.__exit__(None, None, None)
        assert (one.allocated, two.allocated) == (3 * MIB, 6 * MIB)
        del a, b, c

    def test_a_new_block_knows_nothing_of_arrays_of_an_old_one(self) -> None:
        with ft.measure():
            a = np.ones(3 * MIB, np.uint8)
        with ft.measure() as m:
            del a
            b = np.ones(MIB, np.uint8)
        assert (m.peak, m.kept, m.arrays) == (MIB, MIB, 1)
        del b


def test_an_exception_ends_the_block() -> None:
    with pytest.raises(ZeroDivisionError), ft.measure():
        np.ones(MIB, np.uint8)[1 // 0]
    with ft.measure() as m:
        a = np.ones(MIB, np.uint8)
    b = np.ones(MIB, np.uint8)
    assert m.arrays == 1
    del a, b


def test_limits() -> None:
    with ft.measure() as m:
        a = np.ones(3 * MIB, np.uint8)
    m.assert_at_most(peak="3 MiB", allocated=3 * MIB, arrays=1, kept="4 MiB")
    with pytest.raises(AssertionError, match=r"3 MiB held at once \(peak\), where at most 2.5 MiB may be"):
        m.assert_at_most(peak="2.5 MiB", arrays=5)
    with pytest.raises(AssertionError, match=r"1 array made .* 3 MiB still held"):
        m.assert_at_most(arrays=0, kept=1)
    with pytest.raises(TypeError, match="no figure 'peek' to limit: there are allocated, arrays, peak"):
        m.assert_at_most(peek="1 MiB")
    with pytest.raises(ValueError, match="peak"):
        m.assert_at_most(peak="one megabyte")
    del a


@pytest.mark.linux("fork")
def test_a_block_of_a_forked_child_is_its_own() -> None:
    run("""
        import os
        with ft.measure() as m:
            a = np.ones(10**6)
            pid = os.fork()
            b = np.ones(10**6)
            assert m.arrays == 2
            if pid == 0:
                with ft.measure() as inner:
                    c = np.ones(10**6)
                assert (m.arrays, inner.arrays) == (3, 1)
                os._exit(0)
            assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert (m.arrays, m.kept) == (2, 16 * 10**6)
    """)


def test_blocks_that_nobody_ends() -> None:
    run("""
        import gc
        def left():
            with ft.measure() as m:
                yield m
        kept = next(left())
        generator = left(); m = next(generator)
        del generator, kept; gc.collect()
        np.ones(10**6)
        block = ft.measure(); block.__enter__()
        np.ones(10**6)
    """)
