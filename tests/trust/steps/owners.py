"""Steps in which memory comes back another way than it went out, or could be given out twice."""

from __future__ import annotations

import ctypes
from random import Random

import numpy as np

import firsttouch as ft
from tests.trust.content import Filled
from tests.trust.world import World


def _data(array: np.ndarray) -> ctypes.c_void_p:
    """Return the field of an array object that holds the address of its data, the first one."""
    return ctypes.c_void_p.from_address(id(array) + object.__basicsize__)


def swapped(world: World, random: Random) -> None:
    """Two arrays that have exchanged their data and not their handlers, as f2py's intent(inplace) leaves them."""
    nbytes, chosen = world.size(random), [world.allocator(random) for _ in range(2)]
    one, other = (ft.empty(nbytes, "u1", allocator=each) for each in chosen)
    if random.random() < 0.3:
        other = np.empty(nbytes, "u1")
    its, others = _data(one), _data(other)
    its.value, others.value = others.value, its.value
    world.keep(one, random, "ft.empty, swapped with another")
    world.keep(other, random, "empty, swapped with another")


def lent_twice(world: World, random: Random) -> None:
    """Two fixed buffers on the same memory: one is refused, or they would hand out the same bytes."""
    numpy = ft.numpy_default()  # who serves here may be a fixed buffer
    memory = random.choice((numpy.empty, numpy.zeros))(1 << 16, "u1")
    first = ft.FixedBuffer(memory)
    try:
        second = ft.FixedBuffer(memory[random.randrange(1 << 13) :])
    except ValueError:
        return
    with ft.scratch(first) as one, ft.scratch(second) as two:
        arrays = [Filled(scope.empty(1 << 14, "u1"), random.randrange(1 << 30), "FixedBuffer") for scope in (one, two)]
        for filled in arrays:
            filled.fill()
        for filled in arrays:
            filled.check()
