"""One run of the program: a child process, measured from its start to its end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from firsttouch.tools.measuring.starter import ending_with_us

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
