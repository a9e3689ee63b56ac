"""Steps that send things between processes: pickles and shared arrays."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

import firsttouch as ft
from tests.trust.content import Filled
from tests.trust.world import World


def copied(world: World, random: Random) -> None:
    """Copies by NumPy and by pickles, of which those out of band leave the buffers where they are."""
    filled, buffers = world.any(random), list[pickle.PickleBuffer]()
    if not filled or not filled.array.flags.c_contiguous:
        return
    array = filled.array
    ways: dict[str, Callable[[], np.ndarray]] = {
        "copied": lambda: np.copy(array),
        "copied deeply": lambda: copy.deepcopy({"a": array})["a"],
        "pickled": lambda: pickle.loads(pickle.dumps(array, protocol=random.choice((2, 4, 5)))),
        "pickled out of band": lambda: pickle.loads(
            pickle.dumps(array, protocol=5, buffer_callback=buffers.append), buffers=buffers
        ),
    }
    # A pickle of NumPy's swaps bytes that are not in this machine's order.
    way = random.choice(list(ways) if array.dtype.isnative else list(ways)[:2])
    Filled(ways[way](), filled.place, f"{filled.made}, then {way}").check()


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
