"""The number of rounds: as requested, or as many as fit the time budget."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from firsttouch.tools.measuring.statistics import Estimate

DEFAULT_BUDGET = 60.0
FEWEST, MOST = 5, 100
#: From this many rounds on, the comparison may stop early, once every interval is at most this wide, as a fraction of
#: its figure.
SETTLED_FROM, SETTLED = 10, 0.02
_LOOK = 5
#: Seconds per run in addition to the program: for the process that starts it, and for comparing its output.
BESIDE = 0.03

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "": 1.0}


def seconds(text: str) -> float:
    """Parse a duration such as `90`, `90s`, `5m`, `1.5h` or `1h30m`; raises :exc:`ValueError` for anything else."""
    parts = re.findall(r"(\d+(?:\.\d*)?|\.\d+)\s*(ms|min|[smh]?)\s*", text.strip().lower())
    whole = "".join(f"{number}{unit}" for number, unit in parts)
    total = sum(float(number) * _UNITS[unit] for number, unit in parts)
    if not parts or whole != "".join(text.lower().split()) or total <= 0:
        raise ValueError(f"{text!r} is not a duration: give seconds, or a value like 90s, 5m or 1h30m")
    return total


@dataclass(frozen=True)
class Schedule:
    """The number of rounds, and about how many seconds they take; `fixed` rounds do not stop early."""

    rounds: int
    expected: float
    fixed: bool
    budget: float

    @property
    def over(self) -> bool:
        """Whether even the fewest rounds exceed the budget."""
        return not self.fixed and self.expected > 1.2 * self.budget


def plan(one_run: float, contenders: int, warmups: int, runs: int | None, budget: float | None) -> Schedule:
    """Plan rounds in which each contender runs once; the budget counts from after the first run.

    `one_run` is the duration of the first run and its preparation in seconds; `warmups` are the uncounted runs of each
    contender.
    """
    turn = contenders * (one_run + BESIDE)
    before = warmups * turn - one_run
    allowed = DEFAULT_BUDGET if budget is None else budget
    fitting = int((allowed - before) / turn)
    rounds = runs if runs is not None else min(MOST, max(FEWEST, fitting))
    return Schedule(rounds, before + rounds * turn, runs is not None, allowed)


def enough(schedule: Schedule, done: int, spent: float, speedups: Callable[[], Iterable[Estimate]]) -> bool:
    """Return, after a round, whether another round is not needed or not affordable.

    `speedups` is slow, and not called every time.
    """
    if schedule.fixed or done < FEWEST:
        return done >= schedule.rounds
    if done >= schedule.rounds or spent > 1.1 * schedule.budget:
        return True
    if done < SETTLED_FROM or done % _LOOK:
        return False
    return all(each.high - each.low <= SETTLED * each.value for each in speedups())
