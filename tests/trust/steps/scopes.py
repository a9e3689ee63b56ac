"""Steps that decide where memory comes from for a while: use, install, scratch memory."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np

import firsttouch as ft
from tests.trust.content import Filled
from tests.trust.expressions import expression
from tests.trust.steps.arrays import make, temporaries
from tests.trust.world import World


def use(world: World, random: Random) -> None:
    with ft.use(world.allocator(random)):
        for _ in range(random.randrange(1, 4)):
            make(world, random)
        if random.random() < 0.3:
            use(world, random)
        temporaries(world, random)


def use_out_of_order(world: World, random: Random) -> None:
    """Blocks that end in the wrong order, as generators end them."""

    def pieces(chosen: Any) -> Iterator[None]:
        with ft.use(chosen):
            make(world, random)
            yield
            make(world, random)

    open_ = [pieces(world.allocator(random)) for _ in range(3)]
    for each in open_:
        next(each)
    random.shuffle(open_)
    for each in open_:
        list(each)


def tasks(world: World, random: Random) -> None:
    """Tasks of one thread, with allocators and scratch memory of their own."""

    async def one(chosen: Any) -> None:
        with ft.use(chosen):
            make(world, random)
            await asyncio.sleep(0)
            temporaries(world, random)
        with ft.scratch() as scope:
            array = scope.empty(world.size(random), "u1")
            await asyncio.sleep(0)
            Filled(array, 0, "scratch in a task").fill()

    async def all_() -> None:
        await asyncio.gather(*(one(world.allocator(random)) for _ in range(3)))

    asyncio.run(all_())


def install(world: World, random: Random) -> None:
    if random.random() < 0.3:
        ft.uninstall()
    else:
        with contextlib.suppress(TypeError):  # not every composition can serve the whole process
            # What a thread or a signal handler installs is there for those that may not be refused.
            ft.install(expression(random, installable=True, refusing=world.tolerant and world.forks))
            world.installed = True
            assert ft.is_installed() or threading.active_count() > 1  # another one may have uninstalled it


def many_pools(world: World, random: Random) -> None:
    """Hundreds of pools: more than there are slots of address space."""
    if world.pools and random.random() < 0.4:
        del world.pools[random.randrange(len(world.pools)) :]
        return
    options = random.choice(("", "decay=None", "pages()"))
    for _ in range(random.randrange(1, 120) if world.most > 4 << 20 else 4):
        pool = ft.pool(decay=None) if options == "decay=None" else ft.pool(options or None)
        small, large = pool.empty(random.randrange(1, 40_000), "u1"), pool.zeros(1 << 20, "u1")
        small[:1] = large[:1] = 1
        world.pools.append((pool, small, large) if random.random() < 0.2 else (pool, small))
    del world.pools[:-450]
    world.allocators.append(world.pools[-1][0])


def buffer(world: World, random: Random) -> Any:
    """Return a scratch buffer, mostly one that was used before."""
    if world.buffers and random.random() < 0.8:
        return random.choice(world.buffers)
    debug = random.random() < 0.3
    made: Any
    match random.randrange(5 if world.buffers else 4):
        case 0:
            made = ft.FixedBuffer("2 MiB", debug=debug)
        case 1:
            made = ft.FixedBuffer(np.empty(1 << 20, "u1"))
        case 2:
            made = ft.ScratchBuffer(random.choice(("64 KiB", "1 MiB")), limit="16 MiB", debug=debug)
        case 3:
            made = ft.ScratchBuffer("256 KiB", expression(random, installable=True), debug=debug)
        case _:
            made = ft.ScratchBuffer("64 KiB", random.choice(world.buffers), debug=debug)
    world.buffers = [*world.buffers[-3:], made]
    return made


def scratch(world: World, random: Random) -> None:
    on = () if random.random() < 0.4 else (buffer(world, random),)
    with contextlib.suppress(MemoryError), ft.scratch(*on) as scope:  # a buffer may be full
        inside = []
        for _ in range(random.randrange(1, 8)):
            way = random.choice((scope.empty, scope.zeros, np.empty))
            array = way(min(world.size(random), 1 << 18), "u1")
            assert way != scope.zeros or not array.any()
            inside.append(Filled(array, random.randrange(1 << 30), "scratch memory"))
            inside[-1].fill()
        for filled in inside:
            filled.check()
        if random.random() < 0.3:
            world.arrays.append(random.choice(inside))
        if random.random() < 0.3:
            scratch(world, random)
        for filled in inside:
            filled.check()


def scratch_function(world: World, random: Random) -> None:
    @ft.scratch
    def work(count: int, deeper: int) -> Any:
        a = np.arange(count)
        if deeper:
            assert int(work(count // 2 + 1, deeper - 1)["last"][-1]) == count // 2 * 4
        return {"last": (a + a) * 2, "view": a[1:]}

    count = world.size(random) // 8 + 1
    with ft.buffers.using_buffer(ft.ScratchBuffer("128 KiB")) if random.random() < 0.3 else contextlib.nullcontext():
        found = work(count, random.randrange(3))
    assert int(found["last"][-1]) == (count - 1) * 4
    assert found["view"].size == count - 1
    assert count < 2 or int(found["view"][-1]) == count - 1


def scratch_error(world: World, random: Random) -> None:
    """An exception that leaves scopes, with arrays on its traceback."""
    try:
        with ft.scratch() as scope, ft.use(world.allocator(random)):
            Filled(scope.empty(world.size(random), "u1"), 1, "scratch memory").fill()
            raise KeyError("on purpose")
    except KeyError:
        return
    raise AssertionError("an exception was lost in a scope")
