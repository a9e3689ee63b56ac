"""One run of the program: a child process, measured from its start to its end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

_STARTER = Path(__file__).with_name("starter.py")
_GRACE = 1.0


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
        [sys.executable, "-I", "-S", str(_STARTER)],
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
    found = json.loads(answer or '{"error": "the process that starts it was killed"}')
    if "error" in found:
        raise CannotStartError(found["error"])
    return Run(**found)


def _end(starter: subprocess.Popen[str]) -> None:
    """Ask the whole group to end, then make it."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(starter.pid, signal.SIGTERM)
        starter.wait()
        until = time.monotonic() + _GRACE
        while time.monotonic() < until:
            os.killpg(starter.pid, 0)  # raises once nobody of the group is left
            time.sleep(0.01)
        os.killpg(starter.pid, signal.SIGKILL)
