"""Cells measured in fresh processes, in an order shuffled anew in every round, and the effect of that order."""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from firsttouch.tools.measuring.contenders import Contender
from firsttouch.tools.measuring.rounds import TOUCH, Call, Worker
from firsttouch.tools.measuring.statistics import Estimate, median

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Cell:
    """A process to start, the call to make, and the bytes that it can use, which it touches beforehand."""

    contender: Contender
    call: Call
    footprint: int


@dataclass(frozen=True)
class Reply(Generic[Key]):
    """A cell's result, with its round, and the fraction of the round that had passed before."""

    key: Key
    round: int
    after: float
    values: dict[str, Any]


def run(cells: Mapping[Key, Cell], rounds: int, progress: Callable[[float], None]) -> list[Reply[Key]]:
    """Measure every cell once per round, each time in a new process."""
    shuffle = random.Random(0)
    replies: list[Reply[Key]] = []
    for number in range(rounds):
        for at, (key, cell) in enumerate(shuffle.sample(list(cells.items()), len(cells))):
            with Worker(cell.contender) as worker:
                worker.ask(Call(*TOUCH, {"nbytes": cell.footprint}))
                values: dict[str, Any] = dict(worker.ask(cell.call))
            replies.append(Reply(key, number, at / len(cells), values))
            progress((number * len(cells) + at + 1) / (rounds * len(cells)))
    return replies


def by_key(replies: Sequence[Reply[Key]]) -> dict[Key, list[dict[str, Any]]]:
    """Return every cell's results, in the order of the rounds."""
    found: dict[Key, list[dict[str, Any]]] = {}
    for reply in replies:
        found.setdefault(reply.key, []).append(reply.values)
    return found


def order_effect(replies: Sequence[Reply[Key]], figure: str) -> Estimate | None:
    """Return a figure late in a round relative to the same cell's early in one; `None` if no cell was both.

    It is 1 if the order does not matter: the median over the cells, with its 95 % interval.
    """
    early: dict[Key, list[float]] = {}
    late: dict[Key, list[float]] = {}
    for reply in replies:
        (early if reply.after < 0.5 else late).setdefault(reply.key, []).append(reply.values[figure])
    ratios = [np.median(late[key]) / np.median(early[key]) for key in early if key in late]
    return median(np.array(ratios, float)[:, None]) if ratios else None
