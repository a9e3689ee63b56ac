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
from pathlib import Path
from typing import Any

from firsttouch.tools.measuring.contenders import Contender

if sys.platform == "win32":
    from firsttouch.tools.measuring import jobs


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


def once(command: Sequence[str], environment: Mapping[str, str], stdin: str, stdout: str, stderr: str) -> Run:
    """Run the command in a session of its own, in the current directory, with these files as its streams.

    What it leaves running ends then, and so does the command if an exception is raised meanwhile, as by Ctrl-C. Raises
    :exc:`OSError` if it cannot be started.
    """
    streams = {"stdin": stdin, "stdout": stdout, "stderr": stderr}
    if sys.platform == "win32":
        return Run(**jobs.once(command, environment, streams))
    order = {"command": list(command), "environment": dict(environment), **streams}
    words = [sys.executable, "-I", "-S", str(Path(__file__).with_name("starter.py")), str(os.getpid())]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, start_new_session=True) as starter:
        try:
            answer, _ = starter.communicate(json.dumps(order))
        finally:
            with contextlib.suppress(ProcessLookupError):  # where nothing is left of the group
                os.killpg(starter.pid, signal.SIGKILL)
    found = json.loads(answer or '{"error": "the process that starts it was killed"}')
    if "error" in found:
        raise OSError(found["error"])
    return Run(**found)


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
    flags = {"-I": sys.flags.isolated, "-E": sys.flags.ignore_environment, "-s": sys.flags.no_user_site}
    options = ["-P", *(option for option, is_set in flags.items() if is_set)]
    installed = [contender.install if isinstance(contender.install, str) else "process"] if contender.install else []
    return [sys.executable, *options, "-m", "firsttouch.tools.measuring.worker", str(os.getpid()), *installed]


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
