"""A program under several allocators: a first run, a checked run of each contender, then rounds until the time is up.

Exit status and output of each run are checked, and whether firsttouch served the program.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from _firsttouch_start import speak
from firsttouch._internal import units
from firsttouch.tools.measuring.contenders import AGAIN, DEFAULT, Contender, environment
from firsttouch.tools.measuring.processes import Run, once
from firsttouch.tools.measuring.statistics import Estimate, estimate

if TYPE_CHECKING:
    from firsttouch.tools.cli.output import Progress

#: Seconds that a comparison takes, if that allows so many rounds at least, and no more than those.
BUDGET = 60.0
FEWEST, MOST = 5, 100
#: How much of a line that differs is shown, and of the standard error of a program that failed.
_SHOWN, _TAIL_LINES, _TAIL_BYTES = 60, 15, 8192


class FailedError(Exception):
    """A run that failed: one sentence, and in `said` the end of its standard error."""

    def __init__(self, sentence: str, said: str = "") -> None:
        super().__init__(sentence)
        self.said = said


@dataclass
class Row:
    """A contender with its counted runs, one per round, or the reason why it has none."""

    contender: Contender
    runs: list[Run] = field(default_factory=list[Run])
    failure: str | None = None
    remark: str | None = None
    left: int | None = None
    """Resident bytes at the end of the largest process that was served, in the checked run."""

    def judge(self, folder: Path, python: bool) -> None:
        """Fill in what a served program's processes reported; `python` tells whether it is Python's itself."""
        reports: list[dict[str, Any]] = []
        for file in folder.glob("*.json"):
            with contextlib.suppress(OSError, ValueError):  # of a process that was ended while it wrote the report
                reports.append(json.loads(file.read_text("utf-8")))
        served = [report for report in reports if report.get("pooled")]
        reasons = [report["not_pooled_because"] for report in reports if report.get("numpy")]
        if served:
            self.left = max(report["resident_bytes"]["now"] or 0 for report in served) or None
            counts = [report["pool"]["allocations"] for report in served if report["pool"]]
            if not sum(counts) and all(report.get("allocator") is None for report in served):  # others may not count
                self.remark = "it received no request for a large block"
        elif reasons:
            self.failure = f"not served: {reasons[0] or 'the start-up hook did not see the import of NumPy'}"
        elif reports:
            self.remark = "NumPy was never imported, so nothing was served"
        else:
            words = "no process reported that it was served: it may not be Python, or may end with os._exit"
            self.failure, self.remark = (None, words) if python else (words, None)


@dataclass(frozen=True)
class Trial:
    """The program, and the inputs of each run."""

    command: Sequence[str]
    folder: Path
    """For temporary files."""
    stdin: str = os.devnull
    ignore_output: bool = False
    python: bool = True
    """Whether the command starts Python itself, rather than any program."""
    program: str = "it"
    """The command without Python, in a line."""

    def run(self, contender: Contender, judged: Row | None = None) -> Run:
        """Run it once; the first run's output is what others are compared with. Raises :exc:`FailedError`.

        With `judged`, the processes report whether they were served.
        """
        first, out, err, reports = (self.folder / name for name in ("first", "out", "err", "reports"))
        shutil.rmtree(reports, ignore_errors=True)  # left over from a contender that failed
        asked = judged is not None and bool(contender.install)
        if asked:
            reports.mkdir()
        variables = environment(contender, str(reports) if asked else None)
        try:
            found = once(self.command, variables, self.stdin, os.devnull if self.ignore_output else str(out), str(err))
        except OSError as error:
            raise FailedError(f"the program could not be started: {speak.reason(error)}") from None
        if found.status != 0:
            said = err.read_bytes()[-_TAIL_BYTES:].decode("utf-8", "backslashreplace")
            raise FailedError(f"the program {found.ended}", "\n".join(said.splitlines()[-_TAIL_LINES:]))
        if not self.ignore_output:
            if not first.exists():
                out.replace(first)
            elif unlike := difference(first, out):
                raise FailedError(
                    f"the output differs from that under {DEFAULT.name} before: {unlike};"
                    " if it prints times or random numbers, use --ignore-output"
                )
        if judged is not None and asked:
            judged.judge(reports, self.python)
        return found


def difference(first: Path, second: Path) -> str | None:
    """Return in which line the second of two files first differs from the first."""
    with first.open("rb") as one, second.open("rb") as two:
        for number, (before, now) in enumerate(zip_longest(one, two), 1):
            if before != now:
                return f"line {number} is {_quoted(now)} instead of {_quoted(before)}"
    return None


def _quoted(line: bytes | None) -> str:
    return "missing" if line is None else repr(line[:_SHOWN].decode("utf-8", "backslashreplace"))


def speedup(default: Sequence[Run], other: Sequence[Run], time: str = "wall") -> Estimate:
    """Return how many times as fast `other` is, round by round, by "wall" or "processor" time."""
    return estimate([getattr(one, time) / getattr(two, time) for one, two in zip(default, other, strict=True)])


@dataclass
class Outcome:
    """The result of a comparison."""

    rows: list[Row]
    rounds: int
    started: str
    seconds: float

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
    """Run everything. Raises :exc:`FailedError` where the default fails."""
    started, begin = datetime.now().astimezone(), time.monotonic()
    rows, shuffle = [Row(contender) for contender in contenders], random.Random(0)
    bar.say(f"Running {trial.program} once, plainly.")
    first = trial.run(DEFAULT)
    names = units.listed([f"{DEFAULT.name} (twice)", *(contender.name for contender in contenders[2:])])
    bar.say(f"One run of {trial.program} takes {units.seconds(first.wall)}; to be compared: {names}.")
    # Not counted, and in order: the default's double shows whether the output is random.
    turn, rounds = 0.0, 0
    for row in rows[1:]:
        before = time.monotonic()
        _turn(trial, row, check=True)
        if row.failure is None:  # the default will take as long as its double
            turn += (time.monotonic() - before) * (2 if row is rows[1] else 1)
        bar.done(0.0)
    counted = time.monotonic()
    least, most = (runs, runs) if runs else (FEWEST, MOST)
    allowed = max(least * turn, min(most * turn, begin + BUDGET - counted))
    planned = f"{units.count(runs, 'run')} of each, " if runs else ""
    bar.say(f"{planned}about {units.seconds(allowed)} to go.")
    # By the clock, so that it takes as long as announced where the runs turn out slower or faster.
    while rounds < least or (rounds < most and (time.monotonic() - counted) * (rounds + 1) / rounds <= allowed):
        for at, row in enumerate(shuffle.sample(rows, len(rows)), 1):
            _turn(trial, row)
            bar.done(max((rounds + at / len(rows)) / most, min(1.0, (time.monotonic() - counted) / allowed)))
        rounds += 1
    return Outcome(rows, rounds, started.isoformat(timespec="seconds"), time.monotonic() - begin)


def _turn(trial: Trial, row: Row, check: bool = False) -> None:
    """Run once. A contender that fails is excluded; if the default fails, no comparison is possible."""
    if row.failure is not None:
        return
    try:
        run = trial.run(row.contender, row if check else None)
    except FailedError as failed:
        if row.contender in (DEFAULT, AGAIN):
            raise
        last = failed.said.rpartition("\n")[2].strip()
        row.failure, row.runs = f"{failed}: {last}" if last else str(failed), []
    else:
        row.runs += [] if check else [run]
