"""One run of one contender: the program as a child process, the resources it used, and all checks.

Checked are its exit status, its output, and whether firsttouch served it.
"""

from __future__ import annotations

import contextlib
import filecmp
import json
import os
import select
import shutil
import signal
import stat
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from firsttouch.tools.compare import candidates
from firsttouch.tools.measuring.contenders import Contender
from firsttouch.tools.measuring.starter import ending_with_us
from firsttouch.tools.measuring.statistics import Estimate, Matrix, around_median

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
    """Return how many times as fast `other` is: the median of the rounds' ratios, with its 95 % interval.

    `time` is the figure that is compared, "wall" or "processor". The interval lies between order statistics: for few
    rounds a bootstrap's is too narrow (with seven, it missed the true value in 14 of 100 cases).
    """
    ratios = column(default, time) / column(other, time)
    return Estimate(float(np.median(ratios)), *around_median(ratios))


@dataclass(frozen=True)
class Service:
    """Why a contender cannot take part, or a remark on its figures."""

    failure: str | None = None
    remark: str | None = None


def told(folder: Path, python: bool) -> Service:
    """Read the reports of all processes in the folder; `python` if the program itself is Python's."""
    reports = [found for file in sorted(folder.glob("*.json")) if (found := _read(file)) is not None]
    pools = [report["pool"] for report in reports if report.get("pooled")]
    if pools:
        served = sum(pool["allocations"] for pool in pools if pool)
        counted = all(report.get("allocator") is None for report in reports)  # other allocators may not count requests
        return Service(remark=None if served or not counted else "it received no request for a large block")
    if not reports:
        words = "no process reported that it was served: it may not be Python, or may end with os._exit"
        return Service(remark=words) if python else Service(failure=words)
    reasons = [report["not_pooled_because"] for report in reports if report.get("numpy")]
    if reasons:
        return Service(failure=f"not served: {reasons[0] or 'the start-up hook did not see the import of NumPy'}")
    return Service(remark="NumPy was never imported, so nothing was served")


def _read(file: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):  # of a process that was ended while it wrote the report
        return None
    return found if isinstance(found, dict) else None


#: The part of a line that is quoted.
_SHOWN = 60


@dataclass(frozen=True)
class Difference:
    """The first line that differs, counted from 1; `None` for an output that had ended."""

    line: int
    reference: bytes | None
    other: bytes | None

    def words(self, in_reference: str, in_other: str) -> str:
        """Quote both lines, from shortly before the first difference, and say where they are from."""
        pairs = enumerate(zip(self.reference or b"", self.other or b"", strict=False))
        apart = next((at for at, (one, two) in pairs if one != two), 0)
        first, second = (_quoted(line, max(0, apart - _SHOWN // 2)) for line in (self.reference, self.other))
        return f"line {self.line} is {first} {in_reference} and {second} {in_other}"


def _quoted(line: bytes | None, begin: int) -> str:
    if line is None:
        return "missing"
    shown = line[begin : begin + _SHOWN].decode("utf-8", "backslashreplace")
    return repr(f"{'...' if begin else ''}{shown}{'...' if len(line) > begin + _SHOWN else ''}")


def first_difference(reference: Path, other: Path) -> Difference | None:
    """Return the first difference between two files, or `None`."""
    if filecmp.cmp(reference, other, shallow=False):
        return None
    with reference.open("rb") as first, other.open("rb") as second:
        for line in count(1):
            ours, theirs = first.readline(), second.readline()
            if ours != theirs:
                return Difference(line, ours or None, theirs or None)
            if not ours:
                return None  # the file changed while it was compared
    return None


_TAIL_LINES, _TAIL_BYTES = 15, 8192


class FailedError(Exception):
    """A run that failed: one sentence, and in `said` the end of its standard error."""

    def __init__(self, sentence: str, said: str = "") -> None:
        super().__init__(sentence)
        self.said = said


class PrepareError(FailedError):
    """The command of --prepare failed."""


class DifferentError(Exception):
    """Two runs produced different output; the message is one sentence for the user."""


@dataclass(frozen=True)
class Trial:
    """The program, and the inputs of each run."""

    command: Sequence[str]
    folder: Path
    """For temporary files."""
    stdin: str = os.devnull
    timeout: float | None = None
    prepare: str | None = None
    ignore_output: bool = False
    python: bool = True
    """Whether the command starts Python itself, rather than any program."""

    @property
    def _reference(self) -> Path:
        return self.folder / "first"

    def first(self, default: Contender) -> Run:
        """Do the run whose output the others are compared with."""
        run = self._once(default)
        if not self.ignore_output:
            (self.folder / "out").replace(self._reference)
        return run

    def run(self, contender: Contender, check: bool = False) -> tuple[Run, Service | None]:
        """Do another run; with `check`, also find out whether firsttouch served it.

        Raises :exc:`FailedError` and :exc:`DifferentError`.
        """
        reports = self.folder / "reports"
        asked = check and candidates.served(contender)
        shutil.rmtree(reports, ignore_errors=True)  # left over from a contender that failed
        if asked:
            reports.mkdir()
        run = self._once(contender, str(reports) if asked else None)
        self._compare(contender)
        return run, told(reports, self.python) if asked else None

    def _once(self, contender: Contender, report: str | None = None) -> Run:
        if self.prepare is not None:
            self._prepare(self.prepare)
        out = os.devnull if self.ignore_output else str(self.folder / "out")
        files = Files(self.stdin, out, str(self.folder / "err"))
        try:
            run = once(self.command, candidates.environment(contender, report), files, self.timeout)
        except NeverEndedError:
            raise FailedError(f"the program did not end within {self.timeout:g} s (--timeout)", self._said()) from None
        except CannotStartError as error:
            raise FailedError(f"the program could not be started: {error}") from None
        if run.status != 0:
            raise FailedError(f"the program {run.ended}", self._said())
        return run

    def _prepare(self, words: str) -> None:
        # In the terminal's own session, in which sudo may still hold the user's credentials.
        command = ending_with_us(["/bin/sh", "-c", words])
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", check=False
        )
        if done.returncode != 0:
            raise PrepareError(f"--prepare {words!r} ended with status {done.returncode}", done.stderr)

    def _compare(self, contender: Contender) -> None:
        if self.ignore_output:
            return
        out = self.folder / "out"
        found = first_difference(self._reference, out)
        if found is None:
            return
        if contender not in (candidates.DEFAULT, candidates.AGAIN):
            words = found.words(f"under {candidates.DEFAULT.name}", f"under {contender.name}")
            self._once(candidates.DEFAULT)
            again = first_difference(self._reference, out)
            if again is None:
                raise DifferentError(f"the output differs: {words}; use --ignore-output to compare nevertheless")
            found = again
        words = found.words("in the first run", "in another, both under the default")
        raise DifferentError(
            f"the program's output differs between runs: {words}; if it prints times or random numbers,"
            " use --ignore-output"
        )

    def _said(self) -> str:
        """Return the end of the last run's standard error; empty if the run never began."""
        if not (self.folder / "err").exists():
            return ""
        with (self.folder / "err").open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            lines = file.read().decode("utf-8", "backslashreplace").splitlines()
        return "\n".join(lines[-_TAIL_LINES:])
