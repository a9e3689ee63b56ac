"""A worker's budget for arrays, from its memory limit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dask.config
from distributed.system import MEMORY_LIMIT

from _firsttouch_start import units

if TYPE_CHECKING:
    from distributed import Worker

_LEAST = 0.5

#: Memory of the process at the first call, so that the same plugin always computes the same budget.
_at_the_start: int | None = None


def budget(limit: str | float | None, worker: Worker) -> int | None:
    """Return the number of bytes that the worker's arrays may use at once, or ``None`` for no limit.

    ``"auto"`` is the memory at which the nanny terminates a worker (``distributed.worker.memory.terminate``, 0.95 of
    its memory limit) less what the process already uses, and at least half the limit. A task then fails instead of
    its worker being killed.

    Raises :exc:`ValueError` if the limit exceeds the memory of the worker or of the machine.
    """
    global _at_the_start
    memory = worker.memory_manager.memory_limit
    if limit is None or (limit == "auto" and memory is None):
        return None
    if limit == "auto":
        if _at_the_start is None:
            _at_the_start = worker.monitor.get_process_memory()
        share = dask.config.get("distributed.worker.memory.terminate") or 1.0
        return max(int(memory * share) - _at_the_start, int(memory * _LEAST))
    if isinstance(limit, float):
        if memory is None:
            raise ValueError(f"limit={limit} is a part of the worker's memory limit, and it has none: give a size")
        return max(1, int(memory * limit))
    whose, most = (
        ("what this machine has", MEMORY_LIMIT) if memory is None else ("the worker's own memory limit", memory)
    )
    if int(limit) > most:
        raise ValueError(f"limit={units.size(int(limit))} is above {whose}, {units.size(most)}")
    return int(limit)
