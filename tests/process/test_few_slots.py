"""Laws 4 and 8 for pools without slots of the address space of their own, as after some hundred of them."""

import pytest

from tests.programs import run

SLOTS = pytest.mark.parametrize("slots", [0, 4])

PROLOGUE = """
import random
import threading
import numpy as np
import firsttouch as ft
from firsttouch import _firsttouch

def resident():
    return int(open('/proc/self/statm').read().split()[1]) * 4096

def everywhere(work):
    failures = []
    def caught(seed):
        try:
            work(random.Random(seed))
        except BaseException as error:
            failures.append(error)
    threads = [threading.Thread(target=caught, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    caught(99)
    for thread in threads:
        thread.join()
    assert not failures, failures
"""


@SLOTS
def test_resized_arrays_keep_what_they_held(slots: int) -> None:
    run(
        f"_firsttouch.shrink_slots({slots})"
        """
pools = [ft.pool(decay=None) for _ in range(8)]
keep = [pool.empty(32768, 'u1') for pool in pools]

def work(random):
    for _ in range(60):
        pool = random.choice(pools)
        with ft.use(pool):
            a = np.arange(random.choice((100, 1000, 5000, 50_000)))
            for _ in range(6):
                old, new = a.size, random.choice((50, 1000, 1500, 20_000, 70_000, 600_000))
                a.resize(new, refcheck=False)
                kept = min(old, new)
                assert (a[:kept] == np.arange(kept)).all()
                assert not a[kept:].any()
                a = np.arange(new) if new > old else a
everywhere(work)
""",
        prologue=PROLOGUE,
    )


@SLOTS
def test_arrays_that_come_and_go_leave_nothing(slots: int) -> None:
    run(
        f"_firsttouch.shrink_slots({slots})"
        """
pools = [ft.pool(decay=None) for _ in range(8)]
keep = [pool.empty(32768, 'u1') for pool in pools]

def work(random):
    kept = []
    for turn in range(3000):
        with ft.use(random.choice(pools)):
            a = np.full(random.choice((10, 1000, 1500, 3000, 20_000)), turn)
            assert ft.get_allocator(a) == (ft.numpy_default() if a.nbytes < 16384 else ft.get_allocator())
        kept.append((a, turn))
        if len(kept) > 20:
            old, value = kept.pop(random.randrange(20))
            assert (old == value).all()

everywhere(work)
before = resident()
everywhere(work)
assert resident() < before + (24 << 20), (before, resident())
""",
        prologue=PROLOGUE,
    )
