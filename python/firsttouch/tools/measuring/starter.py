"""Starts one command, waits for it, and reports its resource usage.

It is run by its path, because it may not import the package.

With a command on its own command line, it becomes that command at once, and ends with the process that started it.

It is needed because on Linux the peak memory of a new program starts at that of the process that started it: started
from a process with NumPy, rich and matplotlib, every program would seem to need their memory. This one has some 10 MiB.

Nothing in the command's process group outlives it, however either ends: it leads the group, ends the group with itself,
and is notified when the process that started it ends.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing typing would take memory
    from collections.abc import Sequence
    from typing import Any, NoReturn

_PR_SET_PDEATHSIG = 1
_prctl = getattr(ctypes.CDLL(None), "prctl", None)  # looked up now, because a forked child should do little


def end_with(parent: int, number: int = signal.SIGKILL) -> None:
    """Let the kernel send this process a signal when the thread that started it, one of `parent`'s, ends.

    If it has ended already, the signal is sent at once.
    """
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, number, 0, 0, 0)
        if os.getppid() != parent:
            os.kill(os.getpid(), number)


def ending_with_us(command: Sequence[str]) -> list[str]:
    """Return the command line that runs the same command in a process that ends when this thread does."""
    return [sys.executable, "-I", "-S", __file__, str(os.getpid()), *command]


def main() -> None:
    """Read the request from standard input, and write the result to standard output, both as JSON."""
    if command := sys.argv[2:]:
        end_with(int(sys.argv[1]))
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # Python ignores it, and the command would inherit that
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        os.execvp(command[0], command)
    signal.signal(signal.SIGTERM, lambda *_: _end_group())
    end_with(int(sys.argv[1]), signal.SIGTERM)
    json.dump(_run(json.load(sys.stdin)), sys.stdout)
    sys.stdout.flush()
    _end_group()


def _run(order: dict[str, Any]) -> dict[str, Any]:
    """Run the command; return the resources it used, or why it could not be started."""
    new = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    streams = (("stdin", os.O_RDONLY), ("stdout", new), ("stderr", new))
    begin = time.monotonic()
    try:
        child = os.posix_spawnp(
            order["command"][0],
            order["command"],
            order["environment"],
            file_actions=[
                (os.POSIX_SPAWN_OPEN, at, order[name], flags, 0o600) for at, (name, flags) in enumerate(streams)
            ],
            setsigdef=[signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ],  # handled here, or ignored by Python
        )
    except (OSError, ValueError) as error:
        return {"error": getattr(error, "strerror", None) or str(error)}
    _, status, usage = os.wait4(child, 0)
    return {
        "wall": time.monotonic() - begin,
        "user": usage.ru_utime,
        "system": usage.ru_stime,
        "minor_faults": usage.ru_minflt,
        "peak_bytes": usage.ru_maxrss << 10,
        "status": os.waitstatus_to_exitcode(status),
    }


def _end_group() -> NoReturn:
    """End the rest of the group, this process included."""
    os.killpg(0, signal.SIGKILL)
    os._exit(1)  # never reached


if __name__ == "__main__":
    main()
