"""One random program: the steps of a seed, or some of them."""

from __future__ import annotations

import faulthandler
import gc
import math
import pickle
import resource
import struct
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from random import Random

import numpy as np

import firsttouch as ft
from firsttouch._internal.resolve import _of_text
from tests.trust.conditions import set_up
from tests.trust.steps import ALONE, DOOR, FIRST, STEPS, THREADS, scopes
from tests.trust.world import Step, World

LENGTH = 60_000
"""Steps of a program, unless said otherwise. Its start takes as long as some thousand."""
WORTH, LEAST = 2 << 20, 1000
"""Bytes in arrays up to which a program has all its steps. With more, which take longer to compare, it has fewer, but
not fewer than these."""


def planned(seed: int, count: int) -> Iterator[tuple[int, Step, int]]:
    """Yield the steps of a program; each has its own seed, whatever ran before. Of four programs one has mostly scopes,
    which depend on what others are open, one mostly threads, and one mostly the raw domain.
    """
    plan = Random(seed)
    in_scopes = [step for step in ALONE if step.__module__ == scopes.__name__ and step != scopes.many_pools]
    often = {1: DOOR, 2: THREADS, 3: in_scopes}.get(seed % 4, STEPS)
    for number in range(count):
        drawn = often if plan.random() < 0.8 else STEPS
        yield number, plan.choice(drawn) if number else FIRST, plan.randrange(1 << 60)


def program(
    seed: int,
    count: int,
    only: set[int] | None = None,
    told: Callable[[bytes], None] | None = None,
    until: float = math.inf,
) -> int:
    """Run a program and return how many steps it had, those of its threads and children included.

    `told` is called before each step with its number, as eight bytes. No step but the first begins after `until` on the
    monotonic clock.
    """
    faulthandler.enable()
    pickle.loads(pickle.dumps(np.zeros(1)))  # glibc ends a process without memory for NumPy's thread-local data
    plan = list(planned(seed, count))  # later there may be no memory for it
    gc.freeze()  # what is there by now is not looked at again
    world, conditions = set_up(Random(-1 - seed))
    for number, step, own in plan[: max(LEAST, count * WORTH // world.most)]:
        if only is not None and number not in only:
            continue
        if number and time.monotonic() > until:
            break
        if told:
            told(struct.pack("q", number))
        try:
            world.run(step, _random(own, world))
        except BaseException as error:
            unlimit()  # or there may be no memory to say what happened
            traceback.print_exc()
            sys.exit(f"step {number}, {step.__name__}: {type(error).__name__}: {error}\n({conditions})")
    unlimit()  # the end of the interpreter has first uses of its own
    return world.steps


def _random(seed: int, world: World) -> Random:
    """Return the random numbers of a step. The interpreter itself may be short of memory: then arrays and pools go,
    and so do the allocators of the last expressions, which the library remembers: guarded ones keep freed blocks."""
    try:
        return Random(seed)
    except MemoryError:
        if not world.cramped:
            raise
        world.arrays.clear()
        world.pools.clear()
        del world.allocators[1:]
        _of_text.cache_clear()
        ft.trim()
        return Random(seed)


def unlimit() -> None:
    """Take the limit on the address space away."""
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
