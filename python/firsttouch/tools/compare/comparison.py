"""The comparison: a first run, a checked run of each contender, then interleaved rounds in shuffled order."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from firsttouch.tools.compare import candidates, schedule
from firsttouch.tools.compare.runs import Run, speedup
from firsttouch.tools.compare.trial import FailedError, PrepareError, Trial
from firsttouch.tools.measuring.cautions import Watch, of_equals, standing
from firsttouch.tools.measuring.contenders import Contender
from firsttouch.tools.measuring.statistics import Estimate


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

    def planned(self, one_run: float, plan: schedule.Schedule, contenders: Sequence[Contender]) -> None:
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
    plan = schedule.plan(time.monotonic() - beginning, len(rows), wish.warmup, wish.runs, wish.budget)
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
    while not schedule.enough(plan, rounds, time.monotonic() - counting, lambda: _speedups(rows)):
        for row in shuffle.sample(rows, len(rows)):
            run = _turn(trial, row)
            if run is not None:
                row.runs.append(run)
            done += 1
            watcher.done(min(1.0, done / total))
        rounds += 1
    cautions = [*watch.finish(), *standing()]
    outcome = Outcome(rows, rounds, started.isoformat(timespec="seconds"), time.monotonic() - begin, cautions)
    outcome.cautions += of_equals(outcome.noise)
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
