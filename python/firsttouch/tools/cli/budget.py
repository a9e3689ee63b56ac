"""The budget of `firsttouch run --limit`: its processes share it, and a kill by the kernel is explained."""

from __future__ import annotations

import os
import sys

from _firsttouch_start import speak
from firsttouch.tools.cli import BadUsageError, program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

#: An account of a process (crates/firsttouch/src/adaptors/accounts.rs), and its beginning: the process, whether it came
#: to its own end, its bytes, the length of the text behind, the bytes when that was written. The first has the sum.
_SIZE, _BEGINNING = 8 << 10, "=Ix?xxQQQ8x"
#: The signal by which the kernel kills; its module is not needed for more.
_SIGKILL = 9
#: Processes that are shown.
_SHOWN = 3


def run(settings: dict[str, Any], start: Callable[[], NoReturn]) -> int:
    """Run the program on a budget of all its processes, and wait for it; return its status."""
    settings["accounts"] = None
    if os.name == "nt":
        return program.wait_for(start)
    from firsttouch import _firsttouch

    try:
        file = _firsttouch.budget_file()
    except OSError as error:
        raise BadUsageError(f"run: --limit needs a file in memory: {error.strerror}") from None
    killed = _killed()
    settings["accounts"] = [os.getpid(), file]
    status = program.wait_for(start)
    others = _killed() - killed
    if status == -_SIGKILL:
        import resource

        peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
        why = "the kernel killed the program for want of memory" if others > 0 else "the program was killed (SIGKILL)"
        _tell(f"{why}; at most {_size(peak)} of it were resident", file, peak)
    elif others > 0:
        _tell("the kernel killed a process of this memory cgroup for want of memory", file)
    os.close(file)
    return status


def _tell(why: str, file: int, peak: int = 0) -> None:
    import struct

    held: list[tuple[int, str]] = []
    at, begins = _SIZE, struct.calcsize(_BEGINNING)
    while len(account := os.pread(file, _SIZE, at)) == _SIZE:
        process, has_ended, used, length, then = struct.unpack_from(_BEGINNING, account)
        if not process:
            break
        text = account[begins : begins + length].decode(errors="replace") or _size(used)
        if not has_ended:
            held.append((max(used, then), f"process {process} held {text}"))
        at += _SIZE
    if held and 2 * max(held)[0] < peak:
        why += ", most of it not from firsttouch: firsttouch why names it"
    shown = [text for _, text in sorted(held, reverse=True)[:_SHOWN]]
    lines = [why, *(shown or ["nothing of what it held came from firsttouch"])]
    speak.write(sys.__stderr__, "".join(f"firsttouch: {line}\n" for line in lines))


def _size(count: int) -> str:
    return f"{count / (1 << 20):,.0f} MiB"


def _killed() -> int:
    """Return how many processes of this memory cgroup the kernel has killed for want of memory."""
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            groups = [line.rstrip("\n").split(":", 2) for line in file]
    except (OSError, ValueError):
        return 0
    for _, names, path in groups:
        if names and "memory" not in names.split(","):
            continue
        folder, name = ("memory", "memory.oom_control") if names else ("", "memory.events")
        for own in (path, "/"):  # in a container its group is the root
            try:
                with open(os.path.join("/sys/fs/cgroup", folder, own.lstrip("/"), name), encoding="utf-8") as file:
                    return next(int(line.split()[1]) for line in file if line.startswith("oom_kill "))
            except (OSError, ValueError, StopIteration):
                continue
    return 0
