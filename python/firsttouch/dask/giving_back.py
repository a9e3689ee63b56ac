"""Return idle memory before Dask acts on it: before a worker spills, pauses or is killed for memory not in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dask.config

import firsttouch
from firsttouch import _firsttouch

if TYPE_CHECKING:
    from distributed import Worker

#: Fraction of Dask's lowest threshold at which idle memory is returned.
EARLY = 0.95

#: Threshold of each worker of this process; workers that are threads share its memory.
_bounds: dict[Worker, int] = {}


class GivesBack:
    """Wraps the function that reads a worker's memory, the figure on which Dask's decisions are based.

    The memory manager calls it every 100 ms (``distributed.worker.memory.monitor-interval``) and then spills or pauses;
    the worker's statistics call it every 500 ms. Near a threshold, idle memory is returned first, and memory is read
    again. Between calls, and where only a nanny watches, the pools themselves stay below the threshold
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
        """Restore the original function, unless another wrapper has been put around this one."""
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
    """Return the process memory at which idle memory is returned; ``None`` if Dask has no limit or no threshold."""
    manager = worker.memory_manager
    if manager.memory_limit is None:
        return None
    terminate = dask.config.get("distributed.worker.memory.terminate", False)
    shares = [share for share in (manager.memory_spill_fraction, manager.memory_pause_fraction, terminate) if share]
    return int(manager.memory_limit * min(shares) * EARLY) if shares else None
