"""Steps with several threads, processes and signals."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from random import Random

import numpy as np

import firsttouch as ft
from tests.trust.world import REFUSED, World

HANGS = 60
"""Seconds after which a child that does not end counts as hanging."""

CHILDS = 40
"""Steps of a forked child: about as long as the fork takes."""

GIL: bool = getattr(sys, "_is_gil_enabled", lambda: True)()


def forked(body: Callable[[], object]) -> int:
    """Fork a child that runs `body` and ends without handlers; return its number."""
    child = os.fork()
    if not child:
        code = 1
        try:
            body()
            code = 0
        except BaseException as error:
            os.write(2, f"in a child, {type(error).__name__}: {error}\n".encode())
        finally:
            os._exit(code)
    return child


def ended(child: int) -> int:
    """Wait for a child to end, and return its status."""
    end = time.monotonic() + HANGS
    while (status := os.waitpid(child, os.WNOHANG)) == (0, 0):
        if time.monotonic() > end:
            os.kill(child, signal.SIGABRT)  # faulthandler prints the stacks of all threads
            time.sleep(1)
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise AssertionError(f"a child hangs, {HANGS} s after its fork")
        time.sleep(0.001)
    return status[1]


def allocate(world: World, random: Random) -> None:
    """Make arrays and free them, and use no object of Python that threads share.

    Without the GIL each object has a lock. A thread that waits long for it, as on a busy machine, is handed the lock
    while it sleeps: a child that is forked then has a lock that nobody releases.
    """
    with contextlib.suppress(*(REFUSED if world.tolerant else ())):
        arrays = [np.ones(random.randrange(1 << random.randrange(22)), "u1") for _ in range(CHILDS)]
        while arrays:
            assert arrays.pop(random.randrange(len(arrays))).all()


@contextlib.contextmanager
def interrupted_by(body: Callable[[], object]) -> Iterator[None]:
    """Run `body` in a signal handler meanwhile, again and again.

    Each time begins a while after the last has ended: handlers that take longer, on a machine that is busy, would
    interrupt themselves for ever.
    """
    errors: list[str] = []
    over = False

    def handle(*_: object) -> None:
        try:
            body()
        except BaseException:
            errors.append(traceback.format_exc())
        if not over:  # or the signal would come when nobody handles it
            signal.setitimer(signal.ITIMER_REAL, 0.002)

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, 0.0005)
    try:
        yield
    finally:
        over = True
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert not errors, f"in a signal handler: {errors[0]}"


def threads(world: World, random: Random) -> None:
    """Threads with worlds of their own; this one takes over what they leave, and frees it later."""
    if world.cramped:
        return  # where a new thread finds no memory, threading.Thread.start() waits for it for ever
    others = [World(world.most // 4, False, world.tolerant) for _ in range(random.randrange(2, 5))]
    for other in others:
        other.allocators += world.allocators[1:]
        other.buffers += world.buffers
        other.handed = world.handed
    seeds = [random.randrange(1 << 30) for _ in others]
    errors: list[BaseException] = []
    forks = world.forks and random.random() < 0.3

    def work(other: World, seed: int) -> None:
        try:
            if forks and not GIL:
                for turn in range(10):
                    allocate(other, Random(seed + turn))
            else:
                other.some(Random(seed), 40)
        except BaseException as error:
            errors.append(error)

    workers = [threading.Thread(target=work, args=pair) for pair in zip(others, seeds, strict=True)]
    for worker in workers:
        worker.start()
    try:
        if forks:
            for _ in range(random.randrange(1, 4)):
                fork(world, random)
    finally:
        for worker in workers:
            worker.join()
    if errors:
        raise errors[0]
    world.arrays += world.handed
    world.handed.clear()
    for other in others:
        world.arrays += other.arrays[:4]
        world.steps += other.steps


def fork(world: World, random: Random) -> None:
    """A child that checks what it inherited, goes on for some steps, and ends without handlers."""
    if not world.forks:
        return
    seed = random.randrange(1 << 30)
    alone = threading.active_count() == 1

    def body() -> None:
        world.forks, world.handed = False, []
        world.check()
        if alone or GIL:
            world.some(Random(seed), CHILDS)
        else:
            allocate(world, Random(seed))

    status = ended(forked(body))
    assert status == 0, f"a child ended with status {status}"
    world.steps += CHILDS


def signals(world: World, random: Random) -> None:
    """A signal handler that makes arrays and scopes while steps run."""
    if threading.current_thread() is not threading.main_thread() or world.tolerant:
        return

    def make() -> None:
        a = ft.empty(50_000, "u1", allocator=random.choice(("pool()", "calloc()", None)))
        with ft.scratch() as scope, ft.use("pool()"):
            scope.empty(500)
            a[:] = np.ones(50_000, "u1")

    own = Random(random.randrange(1 << 30))
    with interrupted_by(make):
        world.some(own, 10)
