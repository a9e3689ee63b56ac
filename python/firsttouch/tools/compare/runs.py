"""Runs of the program: child processes, their standard streams and resource usage, and statistics of many runs."""

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

#: Seconds for the starter, which allows a process to end.
_ENDING = 5.0


class CannotStartError(Exception):
    """The command itself could not be started; the message says why."""


class NeverEndedError(Exception):
    """The run exceeded its timeout and was ended."""


@dataclass(frozen=True)
class Run:
    """The resources used by one run, as counted by the kernel: seconds, faults, bytes.

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
    """The exit status, or the negative number of the signal that ended the process."""

    @property
    def processor(self) -> float:
        """The seconds of processor time."""
        return self.user + self.system

    @property
    def ended(self) -> str:
        """How it ended, as words that follow its name."""
        if self.status >= 0:
            return f"ended with status {self.status}"
        try:
            return f"was ended by {signal.Signals(-self.status).name}"
        except ValueError:
            return f"was ended by signal {-self.status}"


@dataclass(frozen=True)
class Files:
    """The files of a run's standard streams."""

    stdin: str
    stdout: str
    stderr: str


def once(command: Sequence[str], environment: Mapping[str, str], files: Files, timeout: float | None = None) -> Run:
    """Run the command in a session of its own, in the current directory.

    Raises :exc:`CannotStartError`, and :exc:`NeverEndedError` after `timeout` seconds. If any other exception is raised
    meanwhile, such as by Ctrl-C, the command and its process group are ended first.
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
    if not answer:  # the starter was killed before it could end the group
        _end_group(starter)
    found = json.loads(answer or '{"error": "the process that starts it was killed"}')
    if "error" in found:
        raise CannotStartError(found["error"])
    return Run(**found)


def _end(starter: subprocess.Popen[str]) -> None:
    """Let the starter end its group."""
    starter.terminate()
    try:
        starter.wait(_ENDING)
    except subprocess.TimeoutExpired:
        _end_group(starter)


def _end_group(starter: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(starter.pid, signal.SIGKILL)


_PATIENCE = 2.0


def source(folder: Path, waiting: Callable[[], None]) -> str:
    """Copy our standard input to a file, read once; return the null device if it is a terminal.

    `waiting` is called if nothing has arrived for two seconds, because a pipe may never be written to.
    """
    try:
        kind = os.fstat(0).st_mode
    except OSError:  # it is closed
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
    """Return one figure of each run."""
    return np.array([getattr(run, name) for run in runs], float)


def speedup(default: Sequence[Run], other: Sequence[Run], time: str = "wall") -> Estimate:
    """Return how many times as fast `other` is: the median of the rounds' ratios, with its 95 % bootstrap interval.

    `time` is the figure that is compared, "wall" or "processor".

    For few rounds the bootstrap interval is too narrow (with seven, it missed the true value in 14 of 100 cases), so it
    is widened to that of the order statistics.
    """
    ratios = column(default, time) / column(other, time)
    found, (low, high) = median(ratios[:, np.newaxis]), around_median(ratios)
    return Estimate(found.value, min(found.low, low), max(found.high, high))


def quartiles(runs: Sequence[Run], name: str) -> tuple[float, float, float]:
    """Return the lower quartile, the median and the upper quartile of a figure."""
    low, middle, high = np.percentile(column(runs, name), [25, 50, 75])
    return float(low), float(middle), float(high)
