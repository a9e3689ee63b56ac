"""One run of one contender, with all that is checked about it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from firsttouch.tools.compare import candidates
from firsttouch.tools.compare.inside import Service, told
from firsttouch.tools.compare.runs import CannotStartError, Files, NeverEndedError, Run, once
from firsttouch.tools.compare.sameness import difference
from firsttouch.tools.measuring.contenders import Contender
from firsttouch.tools.measuring.starter import ending_with_us

_TAIL_LINES, _TAIL_BYTES = 15, 8192


class FailedError(Exception):
    """A run that did not end well: one sentence, and in `said` the end of what it wrote on standard error."""

    def __init__(self, sentence: str, said: str = "") -> None:
        super().__init__(sentence)
        self.said = said


class PrepareError(FailedError):
    """What --prepare names did not end well."""


class DifferentError(Exception):
    """Two runs wrote different things; the text is one sentence for the user."""


@dataclass(frozen=True)
class Trial:
    """The program, and what each run of it is given."""

    command: Sequence[str]
    folder: Path
    """For files that nobody needs afterwards."""
    stdin: str = os.devnull
    timeout: float | None = None
    prepare: str | None = None
    ignore_output: bool = False

    @property
    def _reference(self) -> Path:
        return self.folder / "first"

    def first(self, default: Contender) -> Run:
        """The run that the others' output is compared with."""
        run = self._once(default)
        if not self.ignore_output:
            (self.folder / "out").replace(self._reference)
        return run

    def run(self, contender: Contender, check: bool = False) -> tuple[Run, Service | None]:
        """One more run; `check` also finds out whether firsttouch is inside where it should be.

        Raises :exc:`FailedError` and :exc:`DifferentError`.
        """
        reports = self.folder / "reports"
        asked = check and candidates.served(contender)
        shutil.rmtree(reports, ignore_errors=True)  # of a contender that failed
        if asked:
            reports.mkdir()
        run = self._once(contender, f"{reports}/%p.json" if asked else None)
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
        # On the terminal's own session, where sudo still knows the user.
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
                raise DifferentError(f"the output is not the same: {words}; --ignore-output compares all the same")
            found = again
        words = found.words("in the first run", "in another, both under NumPy's default")
        raise DifferentError(
            f"the program does not print the same twice: {words}; where it prints times or random numbers,"
            " --ignore-output compares all the same"
        )

    def _said(self) -> str:
        """The end of what the last run wrote on standard error; nothing where it was ended before it began."""
        if not (self.folder / "err").exists():
            return ""
        with (self.folder / "err").open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - _TAIL_BYTES))
            lines = file.read().decode("utf-8", "backslashreplace").splitlines()
        return "\n".join(lines[-_TAIL_LINES:])
