"""Processes that are measured: a command that runs once, and workers that call functions."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from firsttouch.tools.measuring.contenders import Contender

if sys.platform == "win32":
    from firsttouch.tools.measuring import jobs
else:
    from firsttouch.tools.measuring.starter import ending_with_us

#: Seconds for the starter, which allows a process to end.
_ENDING = 5.0


class CannotStartError(Exception):
    """The command itself could not be started; the message says why."""


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


def once(command: Sequence[str], environment: Mapping[str, str], files: Files) -> Run:
    """Run the command in a session of its own, in the current directory.

    Raises :exc:`CannotStartError`. If any other exception is raised meanwhile, such as by Ctrl-C, the command and its
    process group are ended first.
    """
    if sys.platform == "win32":
        try:
            return Run(**jobs.once(command, environment, vars(files)))
        except OSError as error:
            raise CannotStartError(error.strerror or str(error)) from None
    order = {"command": list(command), "environment": dict(environment), **vars(files)}
    pipe = subprocess.PIPE
    with subprocess.Popen(ending_with_us([]), stdin=pipe, stdout=pipe, text=True, start_new_session=True) as starter:
        try:
            answer, _ = starter.communicate(json.dumps(order))
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


@dataclass(frozen=True)
class Call:
    """A function that workers call, by name."""

    module: str
    function: str
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def request(self) -> str:
        """What a worker is sent, a line; the function may be importable only in this process."""
        return json.dumps(vars(self) | {"path": sys.path}) + "\n"


TOUCH = "firsttouch.tools.measuring.worker", "touch"


def worker(contender: Contender) -> list[str]:
    """Return the command that starts the process of a contender, which ends with us.

    The current directory is not on its path (``-P``): a ``json.py`` there must not be imported. Options that ignore the
    environment or the user's site-packages are passed on.
    """
    options = ["-P"]
    if sys.flags.isolated:
        options.append("-I")
    else:
        options += ["-E"] * sys.flags.ignore_environment + ["-s"] * sys.flags.no_user_site
    words = [sys.executable, *options, "-m", "firsttouch.tools.measuring.worker"]
    if contender.install:
        words.append("process" if contender.install is True else contender.install)
    return words if sys.platform == "win32" else ending_with_us(words)


def ask(contender: Contender, calls: Sequence[Call]) -> list[Any]:
    """Let a new process of the contender call functions, one after the other, and return their values."""
    done = subprocess.run(
        worker(contender),
        input="".join(call.request for call in calls),
        env=contender.full_environment(),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        process_group=None if sys.platform == "win32" else 0,  # Ctrl-C reaches only the command, which then ends it
    )
    replies = [value(line, contender) for line in done.stdout.splitlines()]
    if len(replies) < len(calls):
        raise RuntimeError(f"the worker of {contender.name} ended with status {done.returncode}")
    return replies


def value(line: str, contender: Contender) -> Any:
    """Return the value in the reply of a worker; raise RuntimeError for an error in it."""
    reply = json.loads(line)
    if "error" in reply:
        raise RuntimeError(f"in the worker of {contender.name}:\n{reply['error']}")
    return reply["value"]
