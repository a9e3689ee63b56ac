"""use() as a block and as a decorator."""

import contextlib
import gc
import weakref

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import MIB, fill, intact
from tests.programs import ask

pytestmark = pytest.mark.quick

NUMPY = ft.numpy_default()


def test_the_block_and_no_more() -> None:
    pool = ft.pool()
    with ft.use(pool) as given:
        assert given == pool == ft.get_allocator()
        inside = np.empty(MIB)
    assert ft.get_allocator() == NUMPY
    assert ft.get_allocator(inside) == pool
    assert ft.get_allocator(np.empty(MIB)) == NUMPY
    assert not ft.is_installed()


def test_without_an_argument_it_is_the_processes_pool_and_warm() -> None:
    with ft.use() as first:
        array = np.ones(3 * MIB)
        del array
    recycled = ft.stats().recycled
    with ft.use() as second:
        array = np.ones(3 * MIB)
    assert first == second
    assert ft.stats().recycled == recycled + 1
    assert ft.get_allocator(array) == first


def test_blocks_nest() -> None:
    outer, inner = ft.pool(), ft.calloc()
    with ft.use(outer):
        with ft.use(inner):
            with ft.use(NUMPY):
                assert ft.get_allocator() == NUMPY
                with ft.use(outer):
                    assert ft.get_allocator() == outer
                assert ft.get_allocator() == NUMPY
            assert ft.get_allocator() == inner
        assert ft.get_allocator() == outer
    assert ft.get_allocator() == NUMPY


def test_an_exception_passes_and_the_block_ends() -> None:
    with pytest.raises(ZeroDivisionError), ft.use(), ft.use(ft.calloc()):
        raise ZeroDivisionError
    assert ft.get_allocator() == NUMPY


def test_the_same_object_again_inside_itself() -> None:
    scope = ft.use(ft.pool())
    with scope as first:
        with scope, ft.use(NUMPY), scope:
            assert ft.get_allocator() == first
        assert ft.get_allocator() == first
    assert ft.get_allocator() == NUMPY
    with scope:
        assert ft.get_allocator() == first
    assert ft.get_allocator() == NUMPY


def test_blocks_that_end_out_of_order() -> None:
    first, second, third = ft.pool(), ft.pool(), ft.pool()
    one, two, three = ft.use(first), ft.use(second), ft.use(third)
    one.__enter__()
    two.__enter__()
    three.__enter__()
    one.__exit__(None, None, None)
    assert ft.get_allocator() == third
    three.__exit__(None, None, None)
    assert ft.get_allocator() == second
    two.__exit__(None, None, None)
    assert ft.get_allocator() == NUMPY


def test_a_decorated_function() -> None:
    pool = ft.pool()

    @ft.use(pool)
    def made(size: int, *, again: int = 0) -> list[np.ndarray]:
        """Arrays."""
        return [np.ones(size), *(made(size, again=again - 1) if again else [])]

    assert (made.__name__, made.__doc__) == ("made", "Arrays.")
    assert {ft.get_allocator(array) for array in made(MIB, again=3)} == {pool}
    assert ft.get_allocator() == NUMPY
    with pytest.raises(ValueError):
        ft.use(pool)(np.zeros)(-1)
    assert ft.get_allocator() == NUMPY


def test_numpys_own_under_install() -> None:
    ft.install()
    with ft.use(NUMPY):
        array = np.empty(4 * MIB, np.uint8)
    assert ft.get_allocator(array) == NUMPY
    array.resize(9 * MIB, refcheck=False)
    assert ft.get_allocator(array) == NUMPY
    assert ft.get_allocator(np.empty(MIB)) == ft.get_allocator() != NUMPY


@pytest.mark.parametrize("factory", ["pool", "pages", "malloc", "calloc"])
def test_arrays_outlive_their_allocator(factory: str) -> None:
    allocator = getattr(ft, factory)()
    gone = weakref.ref(allocator)
    with contextlib.ExitStack() as stack:
        stack.enter_context(ft.use(allocator))
        arrays = [np.empty(size, np.uint8) for size in (100, 40_000, 5 * MIB)]
    del allocator, stack
    gc.collect()
    assert gone() is None
    for seed, array in enumerate(arrays):
        fill(array, seed)
    more = [np.ones(5 * MIB, np.uint8) for _ in range(5)]
    assert all(intact(array, seed) for seed, array in enumerate(arrays))
    arrays[2].resize(9 * MIB, refcheck=False)
    assert intact(arrays[2], 2, 5 * MIB)
    assert len(more) == 5


def test_repr_shows_the_allocator() -> None:
    assert repr(ft.use(ft.pages())) == "use(pages(huge=False))"


def test_entering_often_leaves_nothing_behind() -> None:
    grown, variables = ask("""
        import contextvars, gc, json
        decorated = ft.use(ft.pool())(int)
        def often(times):
            for _ in range(times):
                with ft.use():
                    pass
                decorated()
            gc.collect()
            return probe.status("VmRSS"), len(contextvars.copy_context())
        before = often(2000)
        after = often(20000)
        print(json.dumps([after[0] - before[0], after[1] - before[1]]))
    """)
    assert grown < 512 << 10
    assert variables == 0


def test_a_pool_whose_arrays_are_gone_leaves_nothing_behind() -> None:
    rss, mapped = ask("""
        import json
        def often(times):
            for _ in range(times):
                with ft.use(ft.pool()):
                    np.ones(1 << 20)
            return probe.status("VmRSS"), probe.status("VmSize")
        before = often(20)
        after = often(300)
        print(json.dumps([after[0] - before[0], after[1] - before[1]]))
    """)
    assert rss < 4 << 20
    assert mapped < 64 << 20
