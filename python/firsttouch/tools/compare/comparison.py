"""The comparison: a first run, a checked run of each contender, then interleaved rounds in shuffled order.

The number of rounds is the requested one, or as many as fit the time budget.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from firsttouch.tools.compare import candidates
from firsttouch.tools.compare.trial import FailedError, PrepareError, Run, Trial, speedup
from firsttouch.tools.measuring.contenders import Contender
from firsttouch.tools.measuring.machine import Watch, cautions
from firsttouch.tools.measuring.statistics import Estimate, noise

DEFAULT_BUDGET = 60.0
FEWEST, MOST = 5, 100
#: From this many rounds on, the comparison may stop early, once every interval is at most this wide, as a fraction of
#: its figure.
SETTLED_FROM, SETTLED = 10, 0.02
_LOOK = 5
#: The difference between two equal contenders that is tolerated.
SPREAD = 0.05
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


def planned(one_run: float, contenders: int, warmups: int, runs: int | None, budget: float | None) -> Schedule:
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


@dataclass
class Row:
    """A contender with its counted runs, one per round, or the reason why it has none."""

    contender: Contender
    runs: list[Run] = field(default_factory=list[Run])
    failure: str | None = None
    remark: str | None = None


@dataclass
class Outcome:
    """The result of a comparison."""

    rows: list[Row]
    rounds: int
    started: str
    seconds: float
    cautions: list[str]

    @property
    def default(self) -> Row:
        """NumPy's own memory, with which the others are compared."""
        return self.rows[0]

    @property
    def others(self) -> list[Row]:
        """Contenders that can be compared: not the default or its double, and all their runs succeeded."""
        return [row for row in self.rows[2:] if row.failure is None]

    @property
    def noise(self) -> Estimate:
        """The default compared with itself."""
        return speedup(self.rows[0].runs, self.rows[1].runs)


class Watcher(Protocol):
    """Receives progress reports."""

    def planned(self, one_run: float, plan: Schedule, contenders: Sequence[Contender]) -> None:
        """Called after the first run, with what follows."""

    def done(self, part: float) -> None:
        """Called with the completed fraction, from 0 to 1."""


@dataclass(frozen=True)
class Wish:
    """The requested effort: counted rounds or seconds, and uncounted runs of each contender before."""

    runs: int | None = None
    budget: float | None = None
    warmup: int = 1


def compare(trial: Trial, contenders: Sequence[Contender], wish: Wish, watcher: Watcher) -> Outcome:
    """Run everything. Raises what `Trial.run` raises for the default, and :exc:`DifferentError` for any contender."""
    started, begin, watch = datetime.now().astimezone(), time.monotonic(), Watch()
    rows = [Row(contender) for contender in contenders]
    beginning = time.monotonic()
    first = trial.first(rows[0].contender)
    plan = planned(time.monotonic() - beginning, len(rows), wish.warmup, wish.runs, wish.budget)
    watcher.planned(first.wall, plan, contenders)
    total = (wish.warmup + plan.rounds) * len(rows)
    done = 1
    watcher.done(done / total)
    for turn in range(wish.warmup):
        for row in rows[1:] if turn == 0 else rows:  # in order: the default's double shows whether output is random
            _turn(trial, row, check=turn == 0)
            done += 1
            watcher.done(done / total)
    shuffle, counting = random.Random(0), time.monotonic()
    rounds = 0
    while not enough(plan, rounds, time.monotonic() - counting, lambda: _speedups(rows)):
        for row in shuffle.sample(rows, len(rows)):
            run = _turn(trial, row)
            if run is not None:
                row.runs.append(run)
            done += 1
            watcher.done(min(1.0, done / total))
        rounds += 1
    said = [*watch.finish(), *cautions()]
    outcome = Outcome(rows, rounds, started.isoformat(timespec="seconds"), time.monotonic() - begin, said)
    if (apart := noise(outcome.noise)) > SPREAD:
        said.append(f"the machine is noisy: two equal contenders may seem {100 * apart:.0f} % apart")
    return outcome


def _turn(trial: Trial, row: Row, check: bool = False) -> Run | None:
    """Run once. A contender that fails is excluded; if the default fails, no comparison is possible."""
    if row.failure is not None:
        return None
    try:
        run, service = trial.run(row.contender, check)
    except FailedError as failed:
        if row.contender in (candidates.DEFAULT, candidates.AGAIN) or isinstance(failed, PrepareError):
            raise
        last = failed.said.rpartition("\n")[2].strip()
        row.failure, row.runs = f"{failed}: {last}" if last else str(failed), []
        return None
    if service is not None:
        row.failure, row.remark = service.failure, service.remark
    return run


def _speedups(rows: Sequence[Row]) -> list[Estimate]:
    """Return the speed-ups of the remaining contenders."""
    return [speedup(rows[0].runs, row.runs) for row in rows[1:] if row.failure is None]
