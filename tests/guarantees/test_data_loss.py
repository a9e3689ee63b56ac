"""Data loss: see the page."""

import itertools
import random

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import KIB, MIB, Bytes, fill, intact
from tests.programs import ask

pytestmark = pytest.mark.quick

SIZES = (20 * KIB, 300 * KIB, MIB, 3 * MIB, 5 * MIB)


def test_memory_with_a_live_array_on_it_is_never_recycled_unmapped_or_moved() -> None:
    pool, dice = ft.pool(decay=0.1), random.Random(7)
    kept: list[tuple[Bytes, int, int]] = []
    for turn in range(400):
        array = pool.empty(dice.choice(SIZES) + turn * 61, np.uint8)
        fill(array, turn)
        kept.append((array, turn, array.ctypes.data))
        if len(kept) > 12:
            kept.pop(dice.randrange(12))
        if turn % 20 == 0:
            ft.trim(pool)
        assert all(intact(array, seed) and array.ctypes.data == address for array, seed, address in kept[turn % 3 :: 3])
    ends = sorted((address, address + array.nbytes) for array, _, address in kept)
    assert all(end <= start for (_, end), (start, _) in itertools.pairwise(ends))


def test_an_array_stays_valid_when_its_allocator_is_dropped_replaced_or_uninstalled() -> None:
    kept = []
    for seed, size in enumerate(SIZES):
        ft.install(ft.tracked(ft.pool()) if seed % 2 else ft.mimalloc())
        kept.append(np.empty(size, np.uint8))
        kept.append(ft.guarded().empty(size, np.uint8))
    ft.uninstall()
    for seed, array in enumerate(kept):
        fill(array, seed)
    more = [ft.pool().empty(size, np.uint8) for size in SIZES]
    for array in more:
        array[:] = 0
    assert all(intact(array, seed) for seed, array in enumerate(kept))


def test_an_array_that_leaves_a_scratch_scope_stays_valid() -> None:
    kept = []
    for turn in range(50):
        with ft.scratch() as scope:
            arrays = [scope.empty(2000 + turn, np.uint8) for _ in range(5)]
            for array in arrays:
                fill(array, turn)
            kept.append(arrays[turn % 5])
    assert all(intact(array, turn) for turn, array in enumerate(kept))


def test_a_resize_that_fails_leaves_the_array_as_it_was() -> None:
    with ft.use():
        array = np.arange(1 << 18)
        with pytest.raises(MemoryError):
            array.resize(1 << 58, refcheck=False)
    assert np.array_equal(array, np.arange(1 << 18))
    failure = ft.last_failure()
    assert failure is not None
    assert failure.asked == 8 << 58


def test_a_shared_array_lives_until_the_last_process_that_holds_it_drops_it() -> None:
    held, gone = ask("""
        import json, os, pickle
        from tests.shared.work import memory_files
        a = ft.shared(100_000)
        a[:] = 5
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            os.read(reader, 1)
            os._exit(7 if (a == 5).all() else 8)
        del a
        alone = memory_files()
        os.write(writer, b"x")
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        b = pickle.loads(pickle.dumps(ft.shared(1000)))
        del b
        assert probe.wait_until(lambda: memory_files() == 0)
        print(json.dumps([alone, memory_files()]))
    """)
    assert (held, gone) == (0, 0)
