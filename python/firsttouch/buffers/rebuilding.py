"""Rebuilds results that contain other arrays: which of their containers change, and how."""

from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import numpy as np

from firsttouch.buffers import aliasing, containers
from firsttouch.buffers.containers import PLAIN

Nodes: TypeAlias = dict[int, Any]
"""Objects by their `id`, which stays unique while they are kept here."""


def reached(roots: Iterable[Any], left: Nodes, wanted: Callable[[Any], bool]) -> tuple[Nodes, dict[int, list[int]]]:
    """Return the containers and wanted objects reachable from `roots`, and their holders; `left` is not entered."""
    found: Nodes = {}
    holders: dict[int, list[int]] = {}
    ahead: list[tuple[Any, int]] = [(root, 0) for root in roots]
    while ahead:
        thing, holder = ahead.pop()
        key = id(thing)
        if type(thing) in PLAIN or key in left:
            continue
        if key not in found:
            is_container = containers.is_container(thing)
            if not is_container and not wanted(thing):
                continue
            found[key], holders[key] = thing, []
            if is_container:
                ahead.extend((each, key) for each in containers.contents(thing))
        holders[key].append(holder)
    return found, holders


def changed(result: Any, left: Nodes, wanted: Callable[[Any], bool]) -> tuple[Nodes, list[list[aliasing.Array]]]:
    """Return the parts of a result that have to be rebuilt, and which arrays share memory."""
    found, holders = reached([result], left, wanted)
    groups = list(aliasing.groups(thing for thing in found.values() if type(thing) is np.ndarray))
    for group in groups:
        for array, neighbour in zip(group, [*group[1:], group[0]], strict=True):
            holders[id(array)].append(id(neighbour))
    stale: Nodes = {}
    ahead = [key for key, thing in found.items() if wanted(thing)]
    while ahead:
        key = ahead.pop()
        if key and key not in stale:
            stale[key] = found[key]
            ahead.extend(holders[key])
    return stale, groups


def made_again(stale: Nodes, groups: list[list[aliasing.Array]]) -> Nodes:
    """Return the replacement of each object that has to be rebuilt."""
    new: Nodes = {}

    def replaced(thing: Any) -> Any:
        return new.get(id(thing), thing)

    for group in groups:
        if id(group[0]) in stale:
            new.update(zip(map(id, group), aliasing.copies(group), strict=True))
    tuples = []
    for key, thing in stale.items():
        if isinstance(thing, np.void):
            new[key] = thing.copy()
        elif isinstance(thing, tuple):
            tuples.append(thing)
        elif not isinstance(thing, np.ndarray):
            new[key] = containers.shell(thing)
    while tuples:  # the contents of a tuple come first
        thing = tuples[-1]
        inner = [each for each in containers.contents(thing) if id(each) in stale and id(each) not in new]
        if inner:
            tuples.extend(inner)
            continue
        tuples.pop()
        if id(thing) not in new:
            new[id(thing)] = containers.again(thing, replaced)
    for key, thing in stale.items():
        if not isinstance(thing, (tuple, np.void)) and containers.is_container(thing):
            containers.fill(new[key], thing, replaced)
    for key, thing in stale.items():
        if isinstance(thing, np.ndarray):
            aliasing.lock(thing, new[key])
    return new
