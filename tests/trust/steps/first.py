"""The first step of every program: each operation is used for the first time while something comes between."""

from __future__ import annotations

import codecs
import threading
import time
from collections.abc import Sequence
from random import Random

from tests.trust.steps.processes import ended, forked, interrupted_by
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

        def same() -> None:
            self.again(World(world.most // 4, False, world.tolerant))

        worker = threading.Thread(target=work)
        worker.start()
        children: list[int] = []
        while worker.is_alive() and len(children) < MOST:
            children.append(forked(same))
            time.sleep(0.002)
        worker.join()
        statuses = [ended(child) for child in children]
        if errors:
            raise errors[0]
        assert not any(statuses), f"children ended with statuses {statuses}"

    def interrupted(self, world: World, random: Random) -> None:
        own = World(world.most // 4, False, tolerant=True)  # it may come to run in a scope that is full
        own.cramped = world.cramped
        with interrupted_by(lambda: self.again(own)):
            self.all(world, random)
