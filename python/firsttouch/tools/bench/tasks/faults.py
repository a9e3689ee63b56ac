"""The page faults and the number of this process."""

from __future__ import annotations

import os
import resource


def faults() -> int:
    """Return the minor faults so far, which read nothing from a disk."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def thread_faults() -> int:
    """Return those of the calling thread."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt


def identity() -> dict[str, float]:
    """Return the process's number, which tells processes apart."""
    return {"pid": os.getpid()}
