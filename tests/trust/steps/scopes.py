"""Steps that decide where memory comes from for a while: use, install, scratch memory."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
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
            chosen = expression(random, installable=True, refusing=world.tolerant and world.forks)
            ft.install(random.choice((None, chosen)))
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
    world.know(world.pools[-1][0], random)


def buffer(world: World, random: Random) -> Any:
    """Return a scratch buffer, mostly one that was used before."""
    if world.buffers and random.random() < 0.8:
        return random.choice(world.buffers)
    made: Any
    match random.randrange(5 if world.buffers else 4):
        case 0:
            made = ft.FixedBuffer("2 MiB")
        case 1:
            made = ft.FixedBuffer(ft.numpy_default().empty(1 << 20, "u1"))  # who serves here may be full
        case 2:
            made = ft.ScratchBuffer(random.choice(("64 KiB", "1 MiB")), ft.limited(ft.pool(), "16 MiB"))
        case 3:
            made = ft.ScratchBuffer("256 KiB", expression(random, installable=True))
        case _:
            made = ft.ScratchBuffer("64 KiB", random.choice(world.buffers))
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


class Strand:
    """A context with blocks and scopes that stay open from step to step, as generators and tasks leave them."""

    def __init__(self) -> None:
        self.context = contextvars.copy_context()
        self.open: list[tuple[Any, Any]] = []

    def enter(self, world: World, random: Random) -> None:
        manager: Any
        match random.randrange(6):
            case 0:
                manager = ft.use(world.allocator(random))
            case 1:  # the thread's in every context, so none that may be full
                manager = ft.buffers.using_buffer(ft.ScratchBuffer("64 KiB"))
            case 2:
                manager = ft.scratch()
            case _:
                manager = ft.scratch(buffer(world, random))
        self.open.append((manager, manager.__enter__()))

    def leave(self, at: int) -> None:
        self.open.pop(at)[0].__exit__(None, None, None)

    def make(self, world: World, random: Random) -> None:
        """An array of whoever serves here, or of a scope around it."""
        nbytes, scope = min(world.size(random), 1 << 18), None
        if self.open and random.random() < 0.5:
            scope = random.choice(self.open)[1]
        with contextlib.suppress(MemoryError, RuntimeError):  # a buffer is full; a scope is another thread's, or closed
            if not isinstance(scope, ft.buffers.Scope):
                array = random.choice((np.empty, np.zeros))(nbytes, "u1")
            else:
                array = scope.zeros(nbytes, "u1")
                assert not array.any()
            world.keep(array, random, "one who serves a context")


def suspended(world: World, random: Random) -> None:
    """Go on in one of some contexts: enter or leave something, in any order and from anywhere, or make arrays."""
    while len(world.strands) < 3:
        world.strands.append(Strand())
    strand: Strand = random.choice(world.strands)
    within = random.choice(world.strands).context if random.random() < 0.2 else strand.context
    match random.randrange(12):
        case 0 | 1 | 2 if len(strand.open) < 8:
            within.run(strand.enter, world, random)
        case 3 | 4 if strand.open:
            within.run(strand.leave, -1)
        case 5 if strand.open:
            within.run(strand.leave, random.randrange(len(strand.open)))
        case 6 if world.buffers:
            with contextlib.suppress(RuntimeError):  # another thread has a scope of it
                random.choice(world.buffers).reset()
        case 7 if not world.cramped:
            thread = threading.Thread(target=within.run, args=(strand.make, world, random))
            thread.start()
            thread.join()
        case 8 if random.random() < 0.3:
            world.strands.remove(strand)  # nobody ever leaves what is open there
        case _:
            within.run(strand.make, world, random)


def scratch_error(world: World, random: Random) -> None:
    """An exception that leaves scopes, with arrays on its traceback."""
    try:
        with ft.scratch() as scope, ft.use(world.allocator(random)):
            Filled(scope.empty(world.size(random), "u1"), 1, "scratch memory").fill()
            raise KeyError("on purpose")
    except KeyError:
        return
    raise AssertionError("an exception was lost in a scope")
