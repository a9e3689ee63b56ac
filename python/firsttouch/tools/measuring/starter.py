"""Runs one command, waits for it, and reports the resources that it used.

It is needed because on Linux the peak memory of a new program starts at that of the process that started it: started
from a process with NumPy, rich and matplotlib, every program would seem to need their memory. This one has some 10 MiB.
It is run by its path, because it may not import the package.

It leads the group of the command, which it ends when the process that started it ends.
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
    from typing import Any

_PR_SET_PDEATHSIG = 1


def main(parent: int) -> None:
    """Read the order from standard input, and write the result to standard output, both as JSON."""
    signal.signal(signal.SIGTERM, lambda *_: os.killpg(0, signal.SIGKILL))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # it had ended before
        os.killpg(0, signal.SIGKILL)
    json.dump(_run(json.load(sys.stdin)), sys.stdout)


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


if __name__ == "__main__":
    main(int(sys.argv[1]))
