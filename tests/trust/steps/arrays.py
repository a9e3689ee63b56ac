"""Steps that make, change and drop arrays."""

from __future__ import annotations

import contextlib
import math
import re
from random import Random
from typing import Any, Literal

import numpy as np

import firsttouch as ft
from firsttouch._firsttouch import SMALL_LIMIT
from tests.trust.content import Filled
from tests.trust.expressions import Own
from tests.trust.world import World

ORDERS: tuple[Literal["C", "F"], ...] = ("C", "F")
LIMITED = re.compile(r"limited\(|FixedBuffer\(|swapped")
DTYPES = ("u1", "i2", "f4", "f8", "c16", "S5", "U7", "V3", "M8[s]", "i2,f4", "?", "f2")


def make(world: World, random: Random) -> None:
    chosen, nbytes = world.allocator(random), world.size(random)
    way = random.choice((ft.empty, ft.zeros, ft.ones, np.empty, np.zeros))
    named = {} if way in (np.empty, np.zeros) else {"allocator": chosen}
    array = way(nbytes, "u1", **named)
    if way in (ft.zeros, np.zeros):
        assert not array.any(), f"zeros() of {nbytes} bytes from {chosen} are not zero"
    if named and isinstance(chosen, Own):
        assert array.ctypes.data in chosen.kept, f"{chosen} was not asked"
    world.keep(array, random, f"{way.__module__}.{way.__name__}({nbytes}, allocator={chosen})")


def shaped(world: World, random: Random) -> None:
    """Arrays of several dimensions, item types and orders."""
    chosen, dtype = world.allocator(random), np.dtype(random.choice(DTYPES))
    count = world.size(random) // dtype.itemsize
    rows = random.choice((0, 1, 3, 17)) if random.random() < 0.5 else 1 + int(math.sqrt(count))
    shape = (rows, count // max(rows, 1))
    array = random.choice((ft.zeros, ft.empty))(shape, dtype, random.choice(ORDERS), allocator=chosen)
    assert array.shape == shape
    assert array.dtype == dtype
    # Small requests that a pool forwards keep the alignment of whoever serves them.
    small = array.nbytes < SMALL_LIMIT
    assert array.ctypes.data % 64 == 0 or small or chosen in (None, "numpy_default()")
    world.keep(array, random, f"ft.zeros or empty({shape}, {dtype}, allocator={chosen})")


def constructed(world: World, random: Random) -> None:
    """Every other constructor, as a function or as a method, against NumPy's own."""
    count = min(world.size(random), 1 << 20) // 8 + 1
    model = np.arange(count, dtype=random.choice(("i4", "f8", ">i8")))
    arguments: dict[str, tuple[Any, ...]] = {
        "ones": (count, "f4"),
        "full": ((2, count // 2), 7.5),
        "array": (model[::2],),
        "zeros_like": (model,),
        "ones_like": (model,),
        "full_like": (model, 3),
        "empty_like": (model,),
    }
    name = random.choice(tuple(arguments))
    given, chosen = arguments[name], world.allocator(random)
    if random.random() < 0.5:
        array = getattr(ft, name)(*given, allocator=chosen)
    else:
        with ft.use(chosen) as allocator:
            array = getattr(allocator, name)(*given)
    expected = getattr(np, name)(*given)
    assert (array.shape, array.dtype, array.strides) == (expected.shape, expected.dtype, expected.strides), name
    assert name == "empty_like" or np.array_equal(array, expected), f"{name}() from {chosen} differs from NumPy's"
    world.keep(array, random, f"ft.{name}(allocator={chosen})")


def objects(world: World, random: Random) -> None:
    """Arrays and lists that hold references, which must be neither lost nor kept."""
    count, chosen = min(world.size(random), 1 << 16) // 8 + 1, world.allocator(random)
    array = random.choice((ft.zeros, ft.empty))(count, object, allocator=chosen)
    array[:] = kept = [str(number) for number in range(count)]
    del kept[random.randrange(count) :]
    assert kept == array[: len(kept)].tolist()
    array.resize(count + random.randrange(count + 1), refcheck=False)
    assert array[count - 1] == str(count - 1)
    assert array[0] == "0"


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
        filled.place = random.randrange(1_000_000)
        filled.fill()


def resize(world: World, random: Random) -> None:
    """Resize in place, several times now and then, as a program that appends does."""
    filled = world.any(random)
    if filled is None or shares_memory(world, filled) or not filled.array.flags.owndata:
        return  # views would be left without memory
    world.arrays = [other for other in world.arrays if other is not filled]
    array, place, made = filled.array, filled.place, filled.made
    del filled
    for _ in range(random.choice((1, 1, 2, 5))):
        before, items = array.size, world.size(random) // array.itemsize
        if random.random() < 0.5:
            items = before + before // 8 + 1  # as lists grow
        if items * array.itemsize > world.most:
            break
        try:
            array.resize(items, refcheck=False)
        except MemoryError:  # arrays may have a limit, or an allocator that is gone, and lose nothing by it
            allocator = ft.get_allocator(array)
            if world.tolerant or not LIMITED.search(f"{made}, {allocator!r}"):
                raise MemoryError(f"{made}, of {allocator!r}, from {before} to {items} items") from None
            break
        made = f"{made}, then resized from {before} to {items} items"
        kept = min(before, items)
        Filled(array[:kept], place, made).check()
        assert not array[kept:].view("u1").any(), f"{made}: what is new is not zero"
        Filled(array, place, made).fill()
    world.arrays.append(Filled(array, place, made))


def view(world: World, random: Random) -> None:
    filled = world.any(random)
    if filled and filled.array.ndim == 1:
        half = filled.array[: filled.array.size // 2]
        world.arrays.append(Filled(half, filled.place, f"{filled.made}, a view"))


def handed_over(world: World, random: Random) -> None:
    """An array goes to whichever thread comes next, and this one takes what another left."""
    filled = world.any(random)
    if filled is not None and not shares_memory(world, filled) and len(world.handed) < 50:
        world.arrays = [other for other in world.arrays if other is not filled]
        world.handed.append(filled)
    if world.handed and random.random() < 0.5:
        with contextlib.suppress(IndexError):  # another thread was faster
            world.arrays.append(world.handed.pop(0))


def temporaries(world: World, random: Random) -> None:
    a = np.arange(world.size(random) // 8 + 1, dtype=float)
    for _ in range(random.randrange(1, 6)):
        b = (a * 2 + a) / (a + 1) - a
    assert np.isfinite(b).all()


def read(world: World, random: Random) -> None:
    """An array of a text's numbers, which NumPy lets grow without the GIL."""
    numbers = np.arange(min(world.size(random), 1 << 18) // 8)
    assert np.array_equal(np.fromstring(" ".join(map(str, numbers)), int, sep=" "), numbers)


def many_small(world: World, random: Random) -> None:
    """A crowd of arrays that come and go, for the caches of small blocks."""
    chosen, each = world.allocator(random), random.randrange(1, 20_000)
    kept = [ft.empty(each, "u1", allocator=chosen) for _ in range(random.randrange(1, 60))]
    for number, array in enumerate(kept):
        array[:] = number
    random.shuffle(kept)
    del kept[::2]
    assert all((array == array[0]).all() for array in kept)
