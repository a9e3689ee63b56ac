"""What the long-running program does in each turn: it begins and ends with the same arrays."""

from __future__ import annotations

import os
import pickle
import threading
from random import Random
from typing import Any

import numpy as np

import firsttouch as ft
from tests.trust.expressions import expression


def temporaries(random: Random) -> None:
    a = np.arange(random.randrange(1, 1 << 19), dtype=float)
    b = (a * 2 + a) / (a + 1) - a
    assert np.isfinite(b).all()


def allocators(random: Random) -> None:
    """Allocators that live for a moment."""
    for _ in range(20):
        with ft.use(expression(random)) as allocator:
            arrays = [allocator.ones(random.randrange(1, 1 << 17), "u1") for _ in range(5)]
            assert all(array.all() for array in arrays)


def pools(random: Random) -> None:
    made = [ft.pool() for _ in range(30)]
    arrays = [pool.zeros(random.randrange(1, 1 << 21), "u1") for pool in made]
    random.shuffle(made)
    del made
    assert not any(array.any() for array in arrays)


def scopes(random: Random) -> Any:
    with ft.scratch() as scope:
        for _ in range(50):
            scope.empty(random.randrange(1, 1 << 16), "u1").fill(1)

    @ft.scratch
    def function(count: int) -> Any:
        return np.ones(count) * 2

    return function(random.randrange(1, 100_000))


def shared(random: Random) -> None:
    for _ in range(10):
        array = ft.shared(random.randrange(1, 1 << 18), "u1")
        text = pickle.dumps(array)
        if random.random() < 0.8:
            assert pickle.loads(text).size == array.size


def threads(random: Random) -> None:
    seeds = [random.randrange(1 << 30) for _ in range(4)]
    workers = [threading.Thread(target=lambda seed=seed: temporaries(Random(seed))) for seed in seeds]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def forks(random: Random) -> None:
    child = os.fork()
    if not child:
        temporaries(random)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def installed(random: Random) -> None:
    ft.install(random.choice(("pool()", "tracked(pool())", "mimalloc()", "guarded(pool())", "pool(decay=0.1)")))
    temporaries(random)
    ft.uninstall()


def looking(random: Random) -> None:
    array = ft.zeros(1 << 20, "u1", allocator="pages()")
    with ft.measure() as found:
        ft.touch(array)
    assert ft.inspect(array).is_backed
    assert str(ft.inspect(array))
    assert str(ft.stats("process"))
    assert str(found)


def peak(random: Random) -> None:
    """Much memory at once, now and then, as services have it."""
    if random.random() < 0.05:
        arrays = [ft.ones(8 << 20, "u1", allocator="pool()") for _ in range(20)]
        del arrays


PARTS = (temporaries, allocators, pools, scopes, shared, threads, forks, installed, looking, peak)


def turn(random: Random) -> None:
    for part in PARTS:
        part(random)
