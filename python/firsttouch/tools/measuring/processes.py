"""Processes that are measured: a command that runs once, and workers that call functions."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from firsttouch.tools.measuring.contenders import Contender, environment

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


def ask(contender: Contender, function: Callable[..., Any], footprint: int = 0, **arguments: Any) -> Any:
    """Let a new process of the contender call a function, by its name, and return the value, which must suit JSON.

    It first touches as many bytes as the function can use. The current directory is not on its path (``-P``): a
    ``json.py`` there must not be imported.
    """
    asked = {"module": function.__module__, "function": function.__name__, "arguments": arguments}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "firsttouch.tools.measuring.worker", str(os.getpid())],
        input=json.dumps(asked | {"footprint": footprint, "path": sys.path}),
        env=environment(contender),
        stdout=subprocess.PIPE,
        text=True,
        check=False,
        process_group=None if sys.platform == "win32" else 0,  # Ctrl-C reaches only the command, which then ends it
    )
    reply = json.loads(done.stdout or "{}")
    if "value" not in reply:
        why = reply.get("error", f"it ended with status {done.returncode}")
        raise RuntimeError(f"in the worker of {contender.name}: {why}")
    return reply["value"]
