"""Results of decorated functions: arrays on scratch memory are copied out, wherever in a result they are."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from firsttouch.buffers import aliasing
from firsttouch.buffers.containers import PLAIN
from firsttouch.buffers.rebuilding import changed, made_again, reached

Owned: TypeAlias = Callable[[Any], bool]


def copied(result: Any, args: tuple[Any, ...], kwargs: dict[str, Any], owned: Owned) -> Any:
    """Return the result of a function with its arrays on ordinary memory.

    ``owned(array)`` returns whether an array's memory is the scope's. Exact arrays are copied with their order and
    flags, and those that share memory in such a way that their copies share it, too; so are scalars of structured
    types. Lists, tuples, dicts, named tuples, dataclasses and arrays of objects that contain such arrays, even deeply
    nested or in cycles, are rebuilt. Whatever needs no change stays the same object, as do the function's arguments and
    their contents. All other objects keep their arrays: masked arrays, matrices, generators, objects of other classes.

    Raises :exc:`MemoryError` if there is no room for the copies.
    """
    kind = type(result)
    if kind in PLAIN:
        return result
    given = (*args, *kwargs.values())
    if kind is np.ndarray and not result.dtype.hasobject:
        if not owned(result) or any(each is result for each in given):
            return result
        (copy,) = aliasing.copies([result])
        aliasing.lock(result, copy)
        return copy

    if kind is tuple and all(map(_is_simple, result)):
        return _flat(result, given, owned)

    def wanted(thing: Any) -> bool:
        if type(thing) is np.void:
            thing = thing.base
        return type(thing) is np.ndarray and owned(thing)

    left = {id(each): each for each in given}
    stale, groups = changed(result, left, wanted)
    if any(not isinstance(thing, (tuple, np.ndarray, np.void)) for thing in stale.values()):
        held, _ = reached(given, {}, lambda _: False)
        if not held.keys().isdisjoint(stale):  # an argument contains what has to be rebuilt
            left |= {key: thing for key, thing in held.items() if not wanted(thing)}
            stale, groups = changed(result, left, wanted)
    return made_again(stale, groups).get(id(result), result)


def _is_simple(thing: Any) -> bool:
    kind = type(thing)
    return kind in PLAIN or (kind is np.ndarray and not thing.dtype.hasobject)


def _flat(result: tuple[Any, ...], given: tuple[Any, ...], owned: Owned) -> tuple[Any, ...]:
    """Copy a tuple of arrays, which most functions return, in less time."""
    own = {id(each): each for each in result if type(each) is np.ndarray and owned(each)}
    for each in given:
        own.pop(id(each), None)
    if not own:
        return result
    apart = all(array.flags.owndata for array in own.values())
    for group in [[array] for array in own.values()] if apart else aliasing.groups(own.values()):
        for array, copy in zip(group, aliasing.copies(group), strict=True):
            aliasing.lock(array, copy)
            own[id(array)] = copy
    return tuple([own.get(id(each), each) for each in result])


def arrays(result: Any) -> list[Any]:
    """Yield the plain arrays in a result, through the same containers."""
    found, _ = reached([result], {}, lambda thing: type(thing) is np.ndarray)
    return [thing for thing in found.values() if type(thing) is np.ndarray]
