"""Page faults of this process, and who it is."""

from __future__ import annotations

import os
import resource


def faults() -> int:
    """Those so far for which nothing had to be read from a disk."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt


def thread_faults() -> int:
    """Those of the calling thread."""
    return resource.getrusage(resource.RUSAGE_THREAD).ru_minflt


def identity() -> dict[str, float]:
    """The process's number, by which two of them are told apart."""
    return {"pid": os.getpid()}
