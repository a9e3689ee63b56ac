"""Processes that are measured: a command that runs once, and workers that are asked to call functions.

Only one of them runs at a time; workers wait on their pipes.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from firsttouch.tools.measuring.contenders import Contender

if sys.platform == "win32":
    from firsttouch.tools.measuring import jobs
else:
    from firsttouch.tools.measuring.starter import ending_with_us

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
    if sys.platform == "win32":
        try:
            return Run(**jobs.once(command, environment, vars(files), timeout))
        except subprocess.TimeoutExpired:
            raise NeverEndedError from None
        except OSError as error:
            raise CannotStartError(error.strerror or str(error)) from None
    order = {"command": list(command), "environment": dict(environment), **vars(files)}
    pipe = subprocess.PIPE
    with subprocess.Popen(ending_with_us([]), stdin=pipe, stdout=pipe, text=True, start_new_session=True) as starter:
        try:
            answer, _ = starter.communicate(json.dumps(order), timeout)
        except BaseException as error:
            _end(starter)
            if isinstance(error, subprocess.TimeoutExpired):
                raise NeverEndedError from None
            raise
    if not answer:  # the starter was killed before it could end the group
        _end_group(starter)
    found = json.loads(answer or '{"error": "the process that starts it was killed"}')
    if "error" in found:
        raise CannotStartError(found["error"])
    return Run(**found)


def shell(command: str) -> tuple[int, str]:
    """Run a command of the system's shell that ends with us, without input; its status and standard error."""
    # In the terminal's own session, in which sudo may still hold the user's credentials.
    words = command if sys.platform == "win32" else ending_with_us(["/bin/sh", "-c", command])
    done = subprocess.run(
        words,
        shell=sys.platform == "win32",
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
    )
    return done.returncode, done.stderr


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


def helper(*words: str) -> list[str]:
    """Return the command that starts a helper process: ``words`` behind this interpreter and its options.

    The current directory is not on the helper's path (``-P``): a ``json.py`` there must not be imported. Options that
    ignore the environment or the user's site-packages are passed on.
    """
    options = ["-P"]
    if sys.flags.isolated:
        options.append("-I")
    else:
        options += ["-E"] * sys.flags.ignore_environment + ["-s"] * sys.flags.no_user_site
    return [sys.executable, *options, *words]


@dataclass(frozen=True)
class Call:
    """A function that workers call, by name."""

    module: str
    function: str
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])


TOUCH = "firsttouch._internal.process_memory", "touch"


class Worker:
    """The process of one contender."""

    def __init__(self, contender: Contender) -> None:
        command = helper("-m", "firsttouch.tools.measuring.worker")
        if contender.install:
            command += ["--install"] if contender.install is True else ["--install", contender.install]
        self.name = contender.name
        self._preload = contender.environment.get("LD_PRELOAD", "")
        self._hello: dict[str, Any] = {}
        options: dict[str, Any] = {"env": contender.full_environment(), "text": True}
        options |= {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        # Ctrl-C reaches only the command, which then ends its workers.
        self._process: subprocess.Popen[str]
        if sys.platform == "win32":
            self._process = jobs.ours().start(command, **options)
        else:
            self._process = subprocess.Popen(ending_with_us(command), process_group=0, **options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self._process.kill()
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()

    def hello(self) -> dict[str, Any]:
        """Return the worker's first message, once it is ready; several workers can start at the same time."""
        if not self._hello:
            self._hello = self._read()
            stem = self._preload.rsplit("/", 1)[-1].split(".so")[0]
            if stem and not any(stem in path for path in self._hello["libraries"]):
                raise RuntimeError(f"{self._preload} was not loaded into the worker of {self.name}")
        return self._hello

    def ask(self, call: Call) -> dict[str, float]:
        """Let the worker run, and wait for its reply."""
        self.hello()
        message = {
            "module": call.module,
            "function": call.function,
            "arguments": call.arguments,
            "path": sys.path,  # the function may be importable only in this process
        }
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        reply: dict[str, float] = self._read()["value"]
        return reply

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the worker of {self.name} ended with status {self._process.wait()}")
        message: dict[str, Any] = json.loads(line)
        if "error" in message:
            raise RuntimeError(f"in the worker of {self.name}:\n{message['error']}")
        return message
