"""One run of one contender, with all checks: its exit status, its output, and whether firsttouch served it."""

from __future__ import annotations

import filecmp
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from firsttouch.tools.compare import candidates
from firsttouch.tools.compare.runs import CannotStartError, Files, NeverEndedError, Run, once
from firsttouch.tools.measuring.contenders import Contender
from firsttouch.tools.measuring.starter import ending_with_us


@dataclass(frozen=True)
class Service:
    """Why a contender cannot take part, or a remark on its figures."""

    failure: str | None = None
    remark: str | None = None


def told(folder: Path) -> Service:
    """Read the reports of all processes in the folder."""
    reports = [found for file in sorted(folder.glob("*.json")) if (found := _read(file)) is not None]
    pools = [report["pool"] for report in reports if report.get("pooled")]
    if pools:
        served = sum(pool["allocations"] for pool in pools if pool)
        counted = all(report.get("allocator") is None for report in reports)  # other allocators may not count requests
        return Service(remark=None if served or not counted else "it received no request for a large block")
    if not reports:
        return Service(remark="no process reported that it was served: it may not be Python, or may end with os._exit")
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


_SHOWN = 60


@dataclass(frozen=True)
class Difference:
    """The first line that differs, counted from 1; `None` for an output that had ended."""

    line: int
    reference: bytes | None
    other: bytes | None

    def words(self, in_reference: str, in_other: str) -> str:
        """Quote both lines, from shortly before the first difference, and say where they are from."""
        first, second = _shown(self.reference, self.other)
        return f"line {self.line} is {first} {in_reference} and {second} {in_other}"


def difference(reference: Path, other: Path) -> Difference | None:
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


def _shown(first: bytes | None, second: bytes | None) -> tuple[str, str]:
    if first is None or second is None:
        return _cut(first, 0), _cut(second, 0)
    apart = next((at for at, (one, two) in enumerate(zip(first, second, strict=False)) if one != two), None)
    if apart is None and first.strip(b"\n") == second.strip(b"\n"):
        ends = [" with a line break" if line.endswith(b"\n") else " without one" for line in (first, second)]
        return _cut(first, 0) + ends[0], _cut(second, 0) + ends[1]
    begin = max(0, (min(len(first), len(second)) if apart is None else apart) - _SHOWN // 2)
    return _cut(first, begin), _cut(second, begin)


def _cut(line: bytes | None, begin: int) -> str:
    if line is None:
        return "missing"
    text = line.removesuffix(b"\n")
    shown = text[begin : begin + _SHOWN].decode("utf-8", "backslashreplace")
    return repr(f"{'...' if begin else ''}{shown}{'...' if len(text) > begin + _SHOWN else ''}")


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
        return run, told(reports) if asked else None

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
        found = difference(self._reference, out)
        if found is None:
            return
        if contender not in (candidates.DEFAULT, candidates.AGAIN):
            words = found.words(f"under {candidates.DEFAULT.name}", f"under {contender.name}")
            self._once(candidates.DEFAULT)
            again = difference(self._reference, out)
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
