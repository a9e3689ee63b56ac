"""Steps that send things between processes: pickles and shared arrays."""

from __future__ import annotations

import copy
import pickle
from random import Random
from typing import Any

import numpy as np

import firsttouch as ft
from tests.trust.content import Filled
from tests.trust.world import World


def whole(world: World, random: Random) -> Filled | None:
    """Return an array whose bytes a pickle keeps: NumPy's swaps those that are not in this machine's order."""
    filled = world.any(random)
    return filled if filled and filled.array.flags.c_contiguous and filled.array.dtype.isnative else None


def pickled(world: World, random: Random) -> None:
    if filled := whole(world, random):
        again = pickle.loads(pickle.dumps(filled.array, protocol=random.choice((2, 4, 5))))
        Filled(again, filled.place, f"{filled.made}, then pickled").check()


def deep_copied(world: World, random: Random) -> None:
    filled = world.any(random)
    if filled and filled.array.flags.c_contiguous:
        again = copy.deepcopy({"a": filled.array})["a"]
        Filled(again, filled.place, f"{filled.made}, then copied deeply").check()


def out_of_band(world: World, random: Random) -> None:
    """Pickles of protocol 5 whose buffers stay where they are."""
    if filled := whole(world, random):
        buffers: list[pickle.PickleBuffer] = []
        text = pickle.dumps(filled.array, protocol=5, buffer_callback=buffers.append)
        Filled(pickle.loads(text, buffers=buffers), filled.place, f"{filled.made}, then pickled").check()


def shared(world: World, random: Random) -> None:
    """A shared array, which is kept; some of its handles are opened, others never."""
    if random.random() < 0.3 and (filled := world.any(random)) and filled.array.flags.c_contiguous:
        array, place = ft.sharing.share(filled.array), filled.place
    else:
        array, place = ft.shared(world.size(random), "u1"), random.randrange(1 << 30)
        assert not array.any()
        Filled(array, place, "shared()").fill()
    handle = pickle.dumps(array)
    if random.random() < 0.6:
        again = pickle.loads(handle)
        Filled(again, place, "shared(), then pickled").check()
        if random.random() < 0.5:
            del array
            Filled(again, place, "shared(), of which only a pickle is left").check()
    elif random.random() < 0.5 and array.ndim == 1:
        world.arrays.append(Filled(array, place, "shared()"))


#: In the place of a part of a handle, and what is raised then.
STRANGE = (None, (), -1, 1 << 70, 1.5, True, "O", "x", b"x", [1], ("O",))
MALFORMED = (
    ft.sharing.SharedArrayError,
    MemoryError,
    OSError,
    TypeError,
    ValueError,
    ArithmeticError,
    AttributeError,
    LookupError,
)


def altered(world: World, random: Random) -> None:
    """Let a part of a handle, or one of its numbers, be another one: it is refused, or all of the array can be read."""
    reduced: Any = ft.shared(5000, "u1").__reduce_ex__(5)  # dropped: where it lives, it is not opened again
    opens, parts = reduced[0], list(reduced[1])
    words, at = list(parts[0]), random.choice((1, 2, 3, 6, 7))
    wrong = random.choice((1, 4096, 1 << 20, -1, random.randrange(1 << 40)))
    if at < 4:
        words[at] += wrong
        parts[0] = tuple(words)
    if at == 6 or random.random() < 0.3:
        parts[1] += wrong
    if at == 7 or random.random() < 0.5:
        parts[2] = (parts[2][0] + wrong,)
    if random.random() < 0.3:
        parts[random.randrange(len(parts))] = random.choice(STRANGE)
    try:
        again = opens(*parts)
    except MALFORMED:
        return
    if isinstance(again, np.ndarray) and again.nbytes < 1 << 30:
        again.max(initial=0)
