"""Idle memory goes before Dask acts on it: before a worker spills, pauses or is killed for memory that nobody uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dask.config

import firsttouch
from firsttouch import _firsttouch

if TYPE_CHECKING:
    from distributed import Worker

#: The part of Dask's lowest threshold from which on idle memory is given back.
EARLY = 0.95

#: Where each worker of this process wants idle memory to go: workers that are threads see the same memory.
_bounds: dict[Worker, int] = {}


class GivesBack:
    """Stands before a worker's reading of its own memory, the one figure that Dask's decisions rest on.

    Every 100 ms (``distributed.worker.memory.monitor-interval``) the memory manager asks it, and then spills or pauses;
    every 500 ms the worker's statistics do. Where the answer comes near a threshold, idle memory is given back first,
    and the answer is what is left. Between two looks, and where only a nanny looks, the pools themselves keep below it
    (``set_memory_bound``).
    """

    def __init__(self, worker: Worker) -> None:
        self._worker, self._monitor = worker, worker.monitor
        self._ask = worker.monitor.get_process_memory
        self._from = threshold(worker)
        self._on = self._from is not None
        if self._on:
            self._monitor.get_process_memory = self._memory
            _bound(worker, self._from)

    def _memory(self) -> int:
        memory = int(self._ask())
        if not self._on or self._from is None or memory < self._from:
            return memory
        firsttouch.trim()
        return int(self._ask())

    def stop(self) -> None:
        """The worker reads its memory as before; whoever came in front of us meanwhile stays."""
        self._on = False
        _bound(self._worker, None)
        if vars(self._monitor).get("get_process_memory") == self._memory:
            del self._monitor.get_process_memory


def _bound(worker: Worker, threshold: int | None) -> None:
    _bounds.pop(worker, None)
    if threshold is not None:
        _bounds[worker] = threshold
    _firsttouch.set_memory_bound(min(_bounds.values(), default=None))


def threshold(worker: Worker) -> int | None:
    """Bytes of process memory from which on idle memory goes; ``None`` where Dask has no limit or no threshold."""
    manager = worker.memory_manager
    if manager.memory_limit is None:
        return None
    terminate = dask.config.get("distributed.worker.memory.terminate", False)
    shares = [share for share in (manager.memory_spill_fraction, manager.memory_pause_fraction, terminate) if share]
    return int(manager.memory_limit * min(shares) * EARLY) if shares else None
