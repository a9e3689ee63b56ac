"""The comparison: a first run, a checked run of each contender, then shuffled rounds until the time is up."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from firsttouch._internal import units
from firsttouch.tools.compare.trial import FailedError, Trial
from firsttouch.tools.measuring.contenders import AGAIN, DEFAULT, Contender
from firsttouch.tools.measuring.machine import cautions
from firsttouch.tools.measuring.processes import Run
from firsttouch.tools.measuring.statistics import Estimate, estimate, margin

if TYPE_CHECKING:
    from firsttouch.tools.cli.output import Progress

#: Seconds that a comparison takes, if that allows so many rounds at least, and no more than those.
BUDGET = 60.0
FEWEST, MOST = 5, 100
#: The difference between two equal contenders that is tolerated.
SPREAD = 0.05


def speedup(default: Sequence[Run], other: Sequence[Run], time: str = "wall") -> Estimate:
    """Return how many times as fast `other` is, round by round, by "wall" or "processor" time."""
    return estimate([getattr(one, time) / getattr(two, time) for one, two in zip(default, other, strict=True)])


@dataclass
class Row:
    """A contender with its counted runs, one per round, or the reason why it has none."""

    contender: Contender
    runs: list[Run] = field(default_factory=list[Run])
    failure: str | None = None
    remark: str | None = None
    left: int | None = None
    """Resident bytes at the end of a served process, in the checked run."""


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

    def noise(self, time: str = "wall") -> Estimate:
        """The default compared with itself."""
        return speedup(self.rows[0].runs, self.rows[1].runs, time)


def compare(trial: Trial, contenders: Sequence[Contender], runs: int | None, bar: Progress) -> Outcome:
    """Run everything. Raises what `Trial.run` raises for the default."""
    started, begin, said = datetime.now().astimezone(), time.monotonic(), cautions()
    rows, shuffle = [Row(contender) for contender in contenders], random.Random(0)
    first = trial.first()
    names = units.listed([f"{DEFAULT.name} (twice)", *(contender.name for contender in contenders[2:])])
    bar.say(f"One run of {trial.program} takes {units.seconds(first.wall)}; to be compared: {names}.")
    # Not counted, and in order: the default's double shows whether the output is random.
    turn, rounds = 0.0, 0
    for row in rows[1:]:
        before = time.monotonic()
        _turn(trial, row, check=True)
        if row.failure is None:  # the default will take as long as its double
            turn += (time.monotonic() - before) * (2 if row is rows[1] else 1)
    counted = time.monotonic()
    least, most = (runs, runs) if runs else (FEWEST, MOST)
    allowed = max(least * turn, min(most * turn, begin + BUDGET - counted))
    planned = f"{units.count(runs, 'run')} of each, " if runs else ""
    bar.say(f"{planned}about {units.seconds(allowed)} to go.")
    # By the clock, so that it takes as long as announced where the runs turn out slower or faster.
    while rounds < least or (rounds < most and (time.monotonic() - counted) * (rounds + 1) / rounds <= allowed):
        for row in shuffle.sample(rows, len(rows)):
            run = _turn(trial, row)
            if run is not None:
                row.runs.append(run)
        rounds += 1
        bar.done(max(rounds / most, min(1.0, (time.monotonic() - counted) / allowed)))
    outcome = Outcome(rows, rounds, started.isoformat(timespec="seconds"), time.monotonic() - begin, said)
    if (apart := margin(outcome.noise())) > SPREAD:
        said.append(f"the machine is noisy: two equal contenders may seem {100 * apart:.0f} % apart")
    return outcome


def _turn(trial: Trial, row: Row, check: bool = False) -> Run | None:
    """Run once. A contender that fails is excluded; if the default fails, no comparison is possible."""
    if row.failure is not None:
        return None
    try:
        run, told = trial.run(row.contender, check)
    except FailedError as failed:
        if row.contender in (DEFAULT, AGAIN):
            raise
        last = failed.said.rpartition("\n")[2].strip()
        row.failure, row.runs = f"{failed}: {last}" if last else str(failed), []
        return None
    if check:
        row.failure, row.remark, row.left = told
    return run
