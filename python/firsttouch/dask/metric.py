"""What a worker's pool holds, for the scheduler's view of the worker: with every heartbeat."""

from __future__ import annotations

import mmap
from typing import TYPE_CHECKING

import firsttouch

if TYPE_CHECKING:
    from distributed import Worker

NAME = "firsttouch"


def measure(worker: Worker) -> dict[str, int]:  # noqa: ARG001 (Dask hands it over)
    """Bytes that arrays use, bytes held in all, and page faults that recycled memory has avoided (of base pages)."""
    found = firsttouch.stats()
    return {
        "in_use": found.in_use,
        "held": found.active + found.idle,
        "faults_avoided": found.recycled_bytes // mmap.PAGESIZE,
    }
