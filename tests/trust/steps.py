"""The steps of a random program. Each takes the world it acts on and random numbers of its own."""

from __future__ import annotations

import contextlib
import gc
import os
import pickle
import resource
import signal
import threading
import time
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

import firsttouch as ft
from tests.trust.content import Filled
from tests.trust.expressions import Own, expression

MOST = 256 << 20
"""Bytes in arrays at the same time; beyond it, arrays are dropped first."""
HANGS = 60
"""Seconds after which a child that does not end counts as hanging."""

Step = Callable[["World", Random], None]


class World:
    """What a program has made so far."""

    def __init__(self, forks: bool = True) -> None:
        self.arrays: list[Filled] = []
        self.allocators: list[Any] = [None]
        self.forks = forks

    def keep(self, array: np.ndarray[Any, Any], random: Random, made: str) -> None:
        filled = Filled(array, random.randrange(1 << 30), made)
        filled.fill()
        filled.check()
        self.arrays.append(filled)
        while sum(each.array.nbytes for each in self.arrays) > MOST:
            self.arrays.pop(random.randrange(len(self.arrays)))

    def any(self, random: Random) -> Filled | None:
        return random.choice(self.arrays) if self.arrays else None

    def check(self) -> None:
        for filled in self.arrays:
            filled.check()


def size(random: Random) -> int:
    """Return a random size, from a byte to 32 MiB, small ones more often."""
    return int(2 ** random.uniform(0, random.choice((12, 18, 22, 25))))


def allocator(world: World, random: Random) -> Any:
    if random.random() < 0.5:
        return random.choice(world.allocators)
    made = Own() if random.random() < 0.05 else expression(random)
    world.allocators.append(made)
    if len(world.allocators) > 12:
        del world.allocators[random.randrange(1, 12)]
    return made


def make(world: World, random: Random) -> None:
    chosen, nbytes = allocator(world, random), size(random)
    way = random.choice((ft.empty, ft.zeros, ft.ones, np.empty, np.zeros))
    named = {} if way in (np.empty, np.zeros) else {"allocator": chosen}
    array = way(nbytes, "u1", **named)
    if way in (ft.zeros, np.zeros):
        assert not array.any(), f"zeros() of {nbytes} bytes from {chosen} are not zero"
    world.keep(array, random, f"{way.__module__}.{way.__name__}({nbytes}, allocator={chosen})")


def drop(world: World, random: Random) -> None:
    if world.arrays:
        world.arrays.pop(random.randrange(len(world.arrays)))


def drop_most(world: World, random: Random) -> None:
    random.shuffle(world.arrays)
    del world.arrays[random.randrange(4) :]


def shares_memory(world: World, filled: Filled) -> bool:
    views = any(other.array.base is filled.array for other in world.arrays)
    return views or filled.array.base is not None


def refill(world: World, random: Random) -> None:
    if (filled := world.any(random)) and not shares_memory(world, filled):
        filled.place = random.randrange(1 << 30)
        filled.fill()


def resize(world: World, random: Random) -> None:
    filled = world.any(random)
    if filled is None or shares_memory(world, filled) or not filled.array.flags.owndata:
        return  # views would be left without memory
    world.arrays = [other for other in world.arrays if other is not filled]
    before, nbytes = filled.array.nbytes, size(random)
    filled.array.resize(nbytes, refcheck=False)
    kept = Filled(filled.array[: min(before, nbytes)], filled.place, f"{filled.made}, then resized to {nbytes}")
    kept.check()
    assert not filled.array[before:].any()
    del kept
    world.keep(filled.array, random, f"{filled.made}, then resized from {before} to {nbytes}")


def temporaries(world: World, random: Random) -> None:
    a = np.arange(size(random) // 8 + 1, dtype=float)
    for _ in range(random.randrange(1, 6)):
        b = (a * 2 + a) / (a + 1) - a
    assert np.isfinite(b).all()


def use(world: World, random: Random) -> None:
    with ft.use(allocator(world, random)):
        for _ in range(random.randrange(1, 4)):
            make(world, random)
        if random.random() < 0.3:
            use(world, random)
        temporaries(world, random)


def install(world: World, random: Random) -> None:
    if random.random() < 0.3:
        ft.uninstall()
    else:
        with contextlib.suppress(TypeError):  # not every composition can serve the whole process
            ft.install(expression(random, installable=True))


def scratch(world: World, random: Random) -> None:
    with ft.scratch() as buffer:
        for _ in range(random.randrange(1, 6)):
            array = buffer.empty(size(random), "u1")
            Filled(array, random.randrange(1 << 30), "scratch").fill()
        if random.random() < 0.3:
            world.keep(array, random, "scratch, and escaped")
        if random.random() < 0.3:
            scratch(world, random)


def scratch_function(world: World, random: Random) -> None:
    @ft.scratch
    def work(count: int) -> Any:
        a = np.arange(count)
        return (a + a) * 2

    count = size(random) // 8 + 1
    assert int(work(count)[-1]) == (count - 1) * 4


def pickled(world: World, random: Random) -> None:
    if filled := world.any(random):
        again = pickle.loads(pickle.dumps(filled.array, protocol=random.choice((2, 4, 5))))
        Filled(again, filled.place, f"{filled.made}, then pickled").check()


def shared(world: World, random: Random) -> None:
    array = ft.shared(size(random), "u1")
    filled = Filled(array, random.randrange(1 << 30), "shared()")
    filled.fill()
    Filled(pickle.loads(pickle.dumps(array)), filled.place, "shared(), then pickled").check()


def view(world: World, random: Random) -> None:
    if filled := world.any(random):
        half = filled.array[: filled.array.size // 2]
        world.arrays.append(Filled(half, filled.place, f"{filled.made}, a view"))


def look(world: World, random: Random) -> None:
    filled = world.any(random)
    if filled is None or not filled.array.size:
        return
    found = ft.inspect(filled.array)
    assert found.nbytes == filled.array.nbytes
    ft.get_allocator(filled.array)
    ft.pagemap(filled.array).counts()
    ft.is_backed(filled.array)


def figures(world: World, random: Random) -> None:
    chosen = random.choice(world.allocators)
    found = ft.stats("process" if chosen is None else chosen)
    assert found.recycled <= found.allocations
    assert found.in_use <= found.peak_in_use + (64 << 20) or not found.peak_in_use
    assert found.first_touched_small_bytes + found.first_touched_huge_bytes == found.first_touched_bytes


def trim(world: World, random: Random) -> None:
    ft.trim(random.choice(("process", *world.allocators[1:])) if random.random() < 0.5 else "process")


def measured(world: World, random: Random) -> None:
    with ft.measure() as found:
        make(world, random)
    assert str(found)


def pause(world: World, random: Random) -> None:
    time.sleep(random.uniform(0, 0.15))
    gc.collect()


def threads(world: World, random: Random) -> None:
    """Threads with worlds of their own; this one takes over what they leave, and frees it later."""
    others = [World(forks=False) for _ in range(random.randrange(2, 5))]
    seeds = [random.randrange(1 << 30) for _ in others]
    errors: list[BaseException] = []

    def work(other: World, seed: int) -> None:
        own = Random(seed)
        try:
            for _ in range(12):
                own.choice(ALONE)(other, own)
            other.check()
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=work, args=pair) for pair in zip(others, seeds, strict=True)]
    for worker in workers:
        worker.start()
    if world.forks and random.random() < 0.3:
        fork(world, random)
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]
    for other in others:
        world.arrays += other.arrays[:4]


def fork(world: World, random: Random) -> None:
    """A child that checks what it inherited, goes on for some steps, and ends without handlers."""
    if not world.forks:
        return
    seed = random.randrange(1 << 30)
    child = os.fork()
    if not child:
        code = 1
        try:
            own = Random(seed)
            world.forks = False
            world.check()
            for _ in range(6):
                own.choice(ALONE)(world, own)
            world.check()
            code = 0
        finally:
            os._exit(code)
    end = time.monotonic() + HANGS
    while (status := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise AssertionError(f"a child hangs, {HANGS} s after its fork")
        time.sleep(0.002)
    assert status[1] == 0, f"a child ended with status {status[1]}"


def short_of_memory(world: World, random: Random) -> None:
    """Room for 64 MiB more of address space: requests fail, and nothing is lost."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm", encoding="ascii") as statm:
        used = int(statm.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (used + (64 << 20), before[1]))
    taken = []
    try:
        for _ in range(30):
            with contextlib.suppress(MemoryError):
                taken.append(ft.empty(8 << 20, "u1", allocator=random.choice(world.allocators)))
            with contextlib.suppress(MemoryError):
                taken.append(np.zeros(size(random), "u1"))
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


ALONE: tuple[Step, ...] = (
    *(make,) * 6,
    *(drop,) * 3,
    drop_most,
    refill,
    *(resize,) * 2,
    *(temporaries,) * 2,
    *(use,) * 2,
    install,
    scratch,
    scratch_function,
    pickled,
    shared,
    view,
    look,
    figures,
    trim,
    measured,
)
"""Steps that may run in several threads at once."""

STEPS: tuple[Step, ...] = (*ALONE, pause, threads, fork, short_of_memory)
