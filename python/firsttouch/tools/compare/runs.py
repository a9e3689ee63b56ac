"""Runs of the program: child processes, what they read, what they used, and statistics over many of them."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import stat
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from firsttouch.tools.measuring.starter import ending_with_us
from firsttouch.tools.measuring.statistics import Estimate, Matrix, around_median, median

#: Seconds; the starter gives what it ends one of them.
_PATIENCE = 5.0


class CannotStartError(Exception):
    """The command itself could not be started; the text says why."""


class NeverEndedError(Exception):
    """The run was ended because its time was up."""


@dataclass(frozen=True)
class Run:
    """What one run used, by the kernel's count: seconds, faults, bytes.

    Times and faults are those of the process and of all its descendants that were waited for; the peak is that of the
    largest single one of them.
    """

    wall: float
    user: float
    system: float
    minor_faults: int
    major_faults: int
    peak_bytes: int
    status: int
    """The exit status; a signal's number, negative, where that ended it."""

    @property
    def ended(self) -> str:
        """How it ended, in words that follow its name."""
        if self.status >= 0:
            return f"ended with status {self.status}"
        try:
            return f"was ended by {signal.Signals(-self.status).name}"
        except ValueError:
            return f"was ended by signal {-self.status}"


@dataclass(frozen=True)
class Files:
    """Where a run's standard streams lead."""

    stdin: str
    stdout: str
    stderr: str


def once(command: Sequence[str], environment: Mapping[str, str], files: Files, timeout: float | None = None) -> Run:
    """Run the command in a session of its own, in this directory.

    Raises :exc:`CannotStartError`, and :exc:`NeverEndedError` after `timeout` seconds. Whatever else is raised
    meanwhile, such as Ctrl-C, the command and what it started in its process group are ended first.
    """
    order = {"command": list(command), "environment": dict(environment), **vars(files)}
    with subprocess.Popen(
        ending_with_us([]),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as starter:
        try:
            answer, _ = starter.communicate(json.dumps(order), timeout)
        except subprocess.TimeoutExpired:
            _end(starter)
            raise NeverEndedError from None
        except BaseException:
            _end(starter)
            raise
    if not answer:  # somebody ended the starter, which had no time to end the others
        _end_group(starter)
    found = json.loads(answer or '{"error": "the process that starts it was killed"}')
    if "error" in found:
        raise CannotStartError(found["error"])
    return Run(**found)


def _end(starter: subprocess.Popen[str]) -> None:
    """Have the starter end its group."""
    starter.terminate()
    try:
        starter.wait(_PATIENCE)
    except subprocess.TimeoutExpired:
        _end_group(starter)


def _end_group(starter: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(starter.pid, signal.SIGKILL)


_PATIENCE = 2.0


def source(folder: Path, waiting: Callable[[], None]) -> str:
    """A file with what stands on our standard input, read once; the null device where that is a terminal.

    `waiting` is called when nothing has come for two seconds: whoever feeds a pipe may never mean to.
    """
    try:
        kind = os.fstat(0).st_mode
    except OSError:  # it was closed
        return os.devnull
    if os.isatty(0):
        return os.devnull
    if stat.S_ISCHR(kind):
        return os.readlink("/proc/self/fd/0") if os.path.exists("/proc/self/fd/0") else os.devnull
    if not stat.S_ISREG(kind) and not select.select([0], [], [], _PATIENCE)[0]:
        waiting()
    kept = folder / "stdin"
    with open(0, "rb", closefd=False) as incoming, kept.open("wb") as file:
        shutil.copyfileobj(incoming, file)
    return str(kept)


def column(runs: Sequence[Run], name: str) -> Matrix:
    """One figure of each run."""
    return np.array([getattr(run, name) for run in runs], float)


def speedup(default: Sequence[Run], other: Sequence[Run]) -> Estimate:
    """How many times as fast `other` is: the median of the rounds' ratios, with its 95 % bootstrap interval.

    Of few rounds the bootstrap's is too narrow (of seven, it missed the truth in 14 of 100 cases), so it is widened to
    that of the order statistics.
    """
    ratios = column(default, "wall") / column(other, "wall")
    found, (low, high) = median(ratios[:, np.newaxis]), around_median(ratios)
    return Estimate(found.value, min(found.low, low), max(found.high, high))


def quartiles(runs: Sequence[Run], name: str) -> tuple[float, float, float]:
    """Lower quartile, median and upper quartile of a figure."""
    low, middle, high = np.percentile(column(runs, name), [25, 50, 75])
    return float(low), float(middle), float(high)
