"""Cells in fresh processes, in an order that is shuffled anew in every round, and what that order did."""

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
    """One process to start, what it is asked, and the bytes that it can use, which it touches beforehand."""

    contender: Contender
    call: Call
    footprint: int


@dataclass(frozen=True)
class Reply(Generic[Key]):
    """What a cell answered, in which round, and after how large a part of that round."""

    key: Key
    round: int
    after: float
    values: dict[str, Any]


def run(cells: Mapping[Key, Cell], rounds: int, progress: Callable[[float], None]) -> list[Reply[Key]]:
    """Ask every cell once a round, each time in a process of its own."""
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
    """Every cell's answers, in the order of the rounds."""
    found: dict[Key, list[dict[str, Any]]] = {}
    for reply in replies:
        found.setdefault(reply.key, []).append(reply.values)
    return found


def order_effect(replies: Sequence[Reply[Key]], figure: str) -> Estimate | None:
    """How a figure late in a round compares with the same cell's early in one; `None` where no cell was both.

    1 where the order does not matter: the median over the cells, with its 95 % interval.
    """
    early: dict[Key, list[float]] = {}
    late: dict[Key, list[float]] = {}
    for reply in replies:
        (early if reply.after < 0.5 else late).setdefault(reply.key, []).append(reply.values[figure])
    ratios = [np.median(late[key]) / np.median(early[key]) for key in early if key in late]
    return median(np.array(ratios, float)[:, None]) if ratios else None
