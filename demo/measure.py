"""Runs one command, and returns its cost as counted by the kernel."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class CommandError(Exception):
    """A command that failed; the message contains its output."""


@dataclass(frozen=True)
class Cost:
    """The cost of one run: wall, processor and kernel seconds; faults; peak MiB.

    The kernel counts the peak from the fork on, so it is never below the caller's own.
    """

    wall: float
    processor: float
    kernel: float
    faults: int
    peak: float


def run(command: Sequence[str], environment: dict[str, str]) -> tuple[str, Cost]:
    """Return what the command printed, and its cost as counted by the kernel for the process and its children."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        start = time.perf_counter()
        child = subprocess.Popen(command, stdout=out, stderr=err, env=environment)
        _, status, usage = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        if child.returncode != 0:
            said = err.read().decode(errors="replace")
            raise CommandError(f"{' '.join(command)} ended with status {child.returncode}:\n{said}")
        faults = usage.ru_minflt + usage.ru_majflt
        return out.read().decode(), Cost(
            wall, usage.ru_utime + usage.ru_stime, usage.ru_stime, faults, usage.ru_maxrss / 1024
        )


def middle(costs: Sequence[Cost]) -> Cost:
    """Return the median of each figure."""
    return Cost(
        wall=median(cost.wall for cost in costs),
        processor=median(cost.processor for cost in costs),
        kernel=median(cost.kernel for cost in costs),
        faults=round(median(cost.faults for cost in costs)),
        peak=median(cost.peak for cost in costs),
    )
