"""The first step of every program: each operation is used for the first time while something comes between."""

from __future__ import annotations

import codecs
import os
import signal
import threading
import time
import traceback
from collections.abc import Sequence
from random import Random
from types import FrameType

from tests.trust.steps.processes import ended
from tests.trust.world import Step, World

codecs.lookup("latin1")  # pickle's own first use: a signal handler that comes between does not find it

MOST = 60
"""Children of a program; each is a copy of what runs, so that there are not more at once."""


class FirstUses:
    """Runs the steps in a random order; meanwhile forked children or a signal handler begin the same step, too."""

    def __init__(self, alone: Sequence[Step]) -> None:
        self.steps = tuple(dict.fromkeys(alone))
        self.now: tuple[Step, int] | None = None

    def all(self, world: World, random: Random) -> None:
        for step in random.sample(self.steps, len(self.steps)):
            self.now = step, random.randrange(1 << 30)
            self.again(world)
        self.now = None

    def again(self, world: World) -> None:
        """Run the step that runs now, with the same random numbers."""
        if self.now:
            step, seed = self.now
            world.run(step, Random(seed))

    def first_uses(self, world: World, random: Random) -> None:
        if random.random() < 0.5 and not world.cramped:
            self.forked(world, random)
        else:
            self.interrupted(world, random)

    def forked(self, world: World, random: Random) -> None:
        errors: list[BaseException] = []

        def work() -> None:
            try:
                self.all(World(world.most // 4, False, world.tolerant), random)
            except BaseException as error:
                errors.append(error)

        worker = threading.Thread(target=work)
        worker.start()
        children: list[int] = []
        while worker.is_alive() and len(children) < MOST:
            child = os.fork()
            if not child:
                code = 1
                try:
                    self.again(World(world.most // 4, False, world.tolerant))
                    code = 0
                except BaseException as error:
                    os.write(2, f"in a child, {type(error).__name__}: {error}\n".encode())
                finally:
                    os._exit(code)
            children.append(child)
            time.sleep(0.002)
        worker.join()
        statuses = [ended(child) for child in children]
        if errors:
            raise errors[0]
        assert not any(statuses), f"children ended with statuses {statuses}"

    def interrupted(self, world: World, random: Random) -> None:
        seen: list[str] = []
        own = World(world.most // 4, False, tolerant=True)  # it may come to run in a scope that is full
        own.cramped = world.cramped
        over = False

        def handler(_number: int, _frame: FrameType | None) -> None:
            try:
                self.again(own)
            except BaseException:
                seen.append(f"in a signal handler: {traceback.format_exc()}")
            if not over:  # or the signal would come when nobody handles it
                signal.setitimer(signal.ITIMER_REAL, 0.002)  # not before, or it would interrupt itself for ever

        before = signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.0005)
        try:
            self.all(world, random)
        finally:
            over = True
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)
        assert not seen, seen[0]
