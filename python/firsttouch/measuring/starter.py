"""Starts one command, waits for it, and says what it used; run by its path, as it may not import anything of ours.

It stands between because Linux lets a new program's peak memory begin at that of the process which started it: from a
process with NumPy, rich and matplotlib every program would seem to need their memory. This one has some 10 MiB.
"""

import json
import os
import signal
import sys
import time


def main() -> None:
    """Read the order from standard input, and answer on standard output: JSON both."""
    order = json.load(sys.stdin)
    files = [
        (os.POSIX_SPAWN_OPEN, 0, order["stdin"], os.O_RDONLY, 0),
        (os.POSIX_SPAWN_OPEN, 1, order["stdout"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
        (os.POSIX_SPAWN_OPEN, 2, order["stderr"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600),
    ]
    usual = [signal.SIGPIPE, signal.SIGXFSZ]  # Python ignores them, and what it starts would inherit that
    command = order["command"]
    begin = time.monotonic()
    try:
        child = os.posix_spawnp(command[0], command, order["environment"], file_actions=files, setsigdef=usual)
    except (OSError, ValueError) as error:
        answer: dict[str, object] = {"error": getattr(error, "strerror", None) or str(error)}
    else:
        _, status, usage = os.wait4(child, 0)
        answer = {
            "wall": time.monotonic() - begin,
            "user": usage.ru_utime,
            "system": usage.ru_stime,
            "minor_faults": usage.ru_minflt,
            "major_faults": usage.ru_majflt,
            "peak_bytes": usage.ru_maxrss << 10,
            "status": os.waitstatus_to_exitcode(status),
        }
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main()
