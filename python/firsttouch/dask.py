"""Pooled memory for the arrays of Dask workers: one line for a whole cluster.

::

    client.register_plugin(firsttouch.dask.ArrayMemory())

It reaches running workers and those that join or restart later, in all their threads. The same from a worker's start,
without a client: ``dask worker --preload firsttouch.dask``, or this module's name in Dask's setting
``distributed.worker.preload``. The arguments of :class:`ArrayMemory` are then the settings ``firsttouch.allocator`` and
``firsttouch.limit`` of Dask's configuration (in a file, or as ``DASK_FIRSTTOUCH__LIMIT=auto`` in the environment).

A failure on a worker raises an error that names the worker, which continues with NumPy's own memory.
"""

from __future__ import annotations

import contextlib
import threading
from typing import Any, NamedTuple

try:
    import dask.config
    from distributed import Worker, WorkerPlugin
    from distributed.system import MEMORY_LIMIT
except ImportError as _error:
    raise ImportError(f"firsttouch.dask needs Dask's distributed ({_error}): pip install distributed") from None

import firsttouch
from firsttouch import _firsttouch, process, sharing
from firsttouch._firsttouch import Allocator
from firsttouch._internal import units, validation
from firsttouch._internal.resolve import FACTORIES, checked
from firsttouch.custom import AllocatorLike

sharing.register_with_dask()  # arrays shared before distributed was imported would be copied

__all__ = ["ArrayMemory", "dask_setup"]

_METRIC = "firsttouch"


class ArrayMemory(WorkerPlugin):  # type: ignore[misc] # (Dask need not be there for the types)
    """Serve the arrays of Dask workers from an allocator, in every thread of their processes.

    Parameters
    ----------
    allocator : AllocatorLike, optional
        Allocator, or its expression; it travels as text. The default is the worker's own pool.
    limit : {"auto"}, float, int or str, optional
        Budget for the arrays of a worker, beyond which a task gets a :exc:`MemoryError` where its worker would have
        been killed. ``"auto"`` is the memory at which Dask ends a worker (by default 0.95 of its limit) less what the
        worker holds at its start, but at least half of its limit; a float is a fraction of the limit, anything else a
        size. The default is no budget, and so is ``"auto"`` where a worker has no limit.

    Raises
    ------
    TypeError, ValueError
        If an argument is not one of the above.
    RuntimeError
        In ``register_plugin``, if a worker cannot do this; the message names the worker. Workers that join later log
        it. They go on with NumPy's own memory.

    See Also
    --------
    firsttouch.install : Does the same in one process.

    Notes
    -----
    The plugin reaches running workers and those that join or restart later. Registered again, the newer plugin
    replaces the older. A worker that is a thread of the client's process (``LocalCluster(processes=False)``) shares
    the client's memory, whose arrays are served as well until the worker closes.

    Near a threshold of Dask's (0.95 of the first at which a worker spills, pauses or is killed), idle memory is
    returned. ``workers[...]["metrics"]["firsttouch"]`` in the scheduler's information says what a worker holds.

    Examples
    --------
    >>> from firsttouch.dask import ArrayMemory
    >>> plugin = ArrayMemory("pool(max_idle='1 GiB')", limit="auto")
    >>> client.register_plugin(plugin)  # doctest: +SKIP

    """

    name = "firsttouch"

    def __init__(
        self,
        allocator: AllocatorLike | None = None,
        limit: str | float | None = None,
    ) -> None:
        self._given = _Given(_expression(allocator), _limit(limit))
        self._serving: dict[Worker, contextlib.ExitStack] = {}

    @classmethod
    def configured(cls) -> ArrayMemory:
        """Return the plugin of Dask's settings ``firsttouch.allocator`` and ``firsttouch.limit``.

        Returns
        -------
        ArrayMemory

        Raises
        ------
        TypeError, ValueError
            If a setting does not exist or has no valid value.

        """
        found = dask.config.get("firsttouch", None) or {}
        if not isinstance(found, dict):
            raise TypeError(f"Dask's setting firsttouch is {found!r:.40}: give {', '.join(_Given._fields)} below it")
        for key in found:
            if key not in _Given._fields:
                raise ValueError(f"Dask has a setting firsttouch.{key}: there are {', '.join(_Given._fields)}")
        try:
            return cls(**found)
        except (TypeError, ValueError) as error:
            raise type(error)(f"Dask's settings of firsttouch: {error}") from None

    def setup(self, worker: Worker) -> None:
        """Begin to serve a worker; called by Dask in the worker.

        Parameters
        ----------
        worker : distributed.Worker
            The worker, before its first task or between two tasks.

        Raises
        ------
        RuntimeError
            If it cannot be served.

        """
        try:
            with contextlib.ExitStack() as undo:
                self._begin(worker, undo)
                self._serving[worker] = undo.pop_all()
        except Exception as error:
            raise RuntimeError(f"firsttouch on worker {worker.address} (name {worker.name!r}): {error}") from None

    def _begin(self, worker: Worker, undo: contextlib.ExitStack) -> None:
        if _METRIC in worker.metrics:
            raise RuntimeError("an ArrayMemory serves it already, registered under another name")
        text = self._given.allocator
        budget = _budget(self._given.limit, worker)
        if budget is not None:
            text = f"limited({text or 'pool()'}, {budget})"
        _install(worker, text)
        undo.callback(_uninstall, worker)
        _bound(worker, _threshold(worker))
        undo.callback(_bound, worker, None)
        worker.metrics[_METRIC] = _metric
        undo.callback(worker.metrics.pop, _METRIC, None)

    def teardown(self, worker: Worker) -> None:
        """Cease to serve a worker; called by Dask when the worker closes or the plugin is removed.

        Parameters
        ----------
        worker : distributed.Worker
            The worker. Its arrays stay valid.

        """
        undo = self._serving.pop(worker, None)
        if undo is not None:
            undo.close()

    def __reduce__(self) -> tuple[type[ArrayMemory], tuple[Any, ...]]:
        return type(self), tuple(self._given)

    def __repr__(self) -> str:
        given = self._given._asdict().items()
        return f"ArrayMemory({', '.join(f'{name}={value!r}' for name, value in given if value is not None)})"


async def dask_setup(server: object) -> None:
    """Serve a worker from its start, as Dask's settings say; a later ``register_plugin`` replaces it.

    Parameters
    ----------
    server : distributed.Worker
        The worker.

    Raises
    ------
    TypeError
        If `server` is not a worker, or a setting is invalid.

    See Also
    --------
    ArrayMemory.configured : What the settings are.

    Examples
    --------
    In a shell, where Dask calls it: ``dask worker --preload firsttouch.dask``.

    """
    if not isinstance(server, Worker):
        kind = type(server).__name__
        raise TypeError(
            f"firsttouch.dask is a preload for workers (dask worker --preload firsttouch.dask), and this is a {kind}"
        )
    await server.plugin_add(plugin=ArrayMemory.configured())


# Arguments, validated in the client as far as that is possible without the worker.


class _Given(NamedTuple):
    """Arguments of ArrayMemory in a form that travels between processes."""

    allocator: str | None
    limit: str | float | None


def _expression(allocator: object) -> str | None:
    if allocator is None:
        return None
    found = allocator if isinstance(allocator, str) else checked(allocator, "ArrayMemory()")
    if isinstance(found, Allocator) and not _firsttouch.has_expression(found):
        raise TypeError(
            f"ArrayMemory() cannot send {found!r} to other processes: allocators travel as their expression, "
            'as in "pool()" or "limited(pool(), \'4 GiB\')"'
        )
    text = str(found) if isinstance(found, str) else repr(found)
    # Which nodes and sizes there are is the worker's to say.
    others = _firsttouch.check_expression(text, list(FACTORIES))
    if "from_functions" in others:
        raise ValueError(
            "ArrayMemory() cannot send from_functions() to other processes: addresses are meaningless there"
        )
    if "numpy_default" in others:
        raise ValueError("ArrayMemory() got numpy_default(): without the plugin that is what workers have")
    return text


def _limit(limit: object) -> str | float | None:
    if limit is None:
        return None
    if limit == "auto":
        return "auto"
    if isinstance(limit, float):
        if 0.0 < limit <= 1.0:
            return limit
        raise ValueError(f"limit={limit}: as a part of the worker's memory limit give more than 0 and at most 1.0")
    size = validation.size("limit", limit)
    if size == 0:
        raise ValueError(f"limit={limit!r} would serve no array: give 'auto', a part like 0.5, or a size")
    return size


# A worker's budget for arrays, from its memory limit.

_LEAST = 0.5
#: Memory of the process at the first call, so that the same plugin always computes the same budget.
_at_the_start: int | None = None


def _budget(limit: str | float | None, worker: Worker) -> int | None:
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


# The allocator of a worker's process, which workers that are threads of one process share.

_lock = threading.Lock()
_served: set[Worker] = set()
_current: str | None = None
_before: Allocator | None = None


def _install(owner: Worker, expression: str | None) -> None:
    """Install the allocator of ``expression`` (``None``: the process's own pool) until the last owner has ended.

    A process has one allocator, so it serves the other workers of the process from now on, too.
    """
    global _before, _current
    with _lock:
        before = _before if _served else process.serving()
        if not _served or expression != _current:
            firsttouch.install(expression or "process", trim_c_library=True)
        _before, _current = before, expression
        _served.add(owner)


def _uninstall(owner: Worker) -> None:
    """End an owner's use; after the last one, restore the allocator that was installed before the first."""
    with _lock:
        _served.discard(owner)
        if _served:
            return
        if _before is None:
            firsttouch.uninstall()
        else:
            firsttouch.install(_before)


# Idle memory is returned before Dask spills, pauses or kills a worker for memory not in use: the pools look at the
# memory of the process every 100 ms, as Dask does.

#: Fraction of Dask's lowest threshold at which idle memory is returned.
_EARLY = 0.95
#: Threshold of each worker of this process; workers that are threads share its memory.
_bounds: dict[Worker, int] = {}


def _bound(worker: Worker, threshold: int | None) -> None:
    """Let the pools stay below the threshold of a worker, or of the other workers alone."""
    _bounds.pop(worker, None)
    if threshold is not None:
        _bounds[worker] = threshold
    _firsttouch.set_memory_bound(min(_bounds.values(), default=None))


def _threshold(worker: Worker) -> int | None:
    """Return the process memory at which idle memory is returned; ``None`` if Dask has no limit or no threshold."""
    manager = worker.memory_manager
    if manager.memory_limit is None:
        return None
    terminate = dask.config.get("distributed.worker.memory.terminate", False)
    shares = [share for share in (manager.memory_spill_fraction, manager.memory_pause_fraction, terminate) if share]
    return int(manager.memory_limit * min(shares) * _EARLY) if shares else None


def _metric(worker: Worker) -> dict[str, int]:  # noqa: ARG001 (Dask passes it)
    """Return bytes in use and bytes held."""
    found = firsttouch.stats()
    return {"in_use": found.in_use, "held": found.active + found.idle}
