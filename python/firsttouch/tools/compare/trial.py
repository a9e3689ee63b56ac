"""The program of a comparison: its runs, of which exit status, output, and whether firsttouch served it are checked."""

from __future__ import annotations

import filecmp
import json
import os
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any

from firsttouch.tools.measuring.contenders import DEFAULT, Contender, environment
from firsttouch.tools.measuring.processes import CannotStartError, Files, Run, once

_SHOWN, _TAIL_LINES, _TAIL_BYTES = 60, 15, 8192


class FailedError(Exception):
    """A run that failed: one sentence, and in `said` the end of its standard error."""

    def __init__(self, sentence: str, said: str = "") -> None:
        super().__init__(sentence)
        self.said = said


Told = tuple[str | None, str | None, int | None]


def told(folder: Path, python: bool) -> Told:
    """Return why a contender cannot take part, a remark on its figures, and the bytes that its largest process left.

    That is by the reports of its processes; what was left is what was resident at the end.

    `python` tells whether the program itself is Python's.
    """
    reports = [found for file in sorted(folder.glob("*.json")) if (found := _read(file)) is not None]
    pools = [report["pool"] for report in reports if report.get("pooled")]
    if pools:
        served = sum(pool["allocations"] for pool in pools if pool)
        counted = all(report.get("allocator") is None for report in reports)  # other allocators may not count requests
        left = max(report["resident_bytes"]["now"] or 0 for report in reports) or None
        return None, None if served or not counted else "it received no request for a large block", left
    if not reports:
        words = "no process reported that it was served: it may not be Python, or may end with os._exit"
        return (None, words, None) if python else (words, None, None)
    reasons = [report["not_pooled_because"] for report in reports if report.get("numpy")]
    if reasons:
        return f"not served: {reasons[0] or 'the start-up hook did not see the import of NumPy'}", None, None
    return None, "NumPy was never imported, so nothing was served", None


def _read(file: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError):  # of a process that was ended while it wrote the report
        return None
    return found if isinstance(found, dict) else None


def difference(first: Path, second: Path) -> tuple[int, str, str] | None:
    """Return the number of the first line in which two files differ, and the beginnings of both lines."""
    if filecmp.cmp(first, second, shallow=False):
        return None
    with first.open("rb") as one, second.open("rb") as two:
        for number, (ours, theirs) in enumerate(zip_longest(one, two), 1):
            if ours != theirs:
                return number, _quoted(ours), _quoted(theirs)
    return None  # the file changed while it was compared


def _quoted(line: bytes | None) -> str:
    return "missing" if line is None else repr(line[:_SHOWN].decode("utf-8", "backslashreplace"))


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

    def first(self) -> Run:
        """Do the run whose output the others are compared with."""
        run = self._once(DEFAULT)
        if not self.ignore_output:
            (self.folder / "out").replace(self.folder / "first")
        return run

    def run(self, contender: Contender, check: bool = False) -> tuple[Run, Told]:
        """Do another run; with `check`, also return what is told of it. Raises :exc:`FailedError`."""
        reports = self.folder / "reports"
        asked = check and bool(contender.install)
        shutil.rmtree(reports, ignore_errors=True)  # left over from a contender that failed
        if asked:
            reports.mkdir()
        run = self._once(contender, str(reports) if asked else None)
        if not self.ignore_output:
            self._compare()
        return run, told(reports, self.python) if asked else (None, None, None)

    def _once(self, contender: Contender, report: str | None = None) -> Run:
        out = os.devnull if self.ignore_output else str(self.folder / "out")
        files = Files(self.stdin, out, str(self.folder / "err"))
        try:
            run = once(self.command, environment(contender, report), files)
        except CannotStartError as error:
            raise FailedError(f"the program could not be started: {error}") from None
        if run.status != 0:
            raise FailedError(f"the program {run.ended}", self._said())
        return run

    def _compare(self) -> None:
        found = difference(self.folder / "first", self.folder / "out")
        if found is not None:
            line, one, other = found
            raise FailedError(
                f"the output differs from that under {DEFAULT.name} before: line {line} is {other} instead of {one};"
                " if it prints times or random numbers, use --ignore-output"
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
