"""The plugin that Dask hands to every worker."""

from __future__ import annotations

import contextlib
from typing import Any

import dask.config
from distributed import Worker, WorkerPlugin

from firsttouch.custom import AllocatorLike
from firsttouch.dask import binding, metric, serving
from firsttouch.dask.budget import budget
from firsttouch.dask.choices import Choices
from firsttouch.dask.giving_back import GivesBack

_ARGUMENTS = ("allocator", "numa", "huge", "limit")


class ArrayMemory(WorkerPlugin):  # type: ignore[misc] # (Dask need not be there for the types)
    """Arrays of a Dask worker on memory that is kept: ``client.register_plugin(ArrayMemory())``.

    It serves the worker's whole process, every thread of it, from the start of a worker or from now on. A worker that
    is a thread of the client's process (``LocalCluster(processes=False)``) shares the client's memory: the client's
    arrays are served too, and what was installed before is back when the worker closes. Registered again, the newer
    plugin replaces the older one; with the same arguments nothing changes.

    Near a threshold of Dask's (0.95 of the first at which a worker spills, pauses or is killed) what lies idle is given
    back before Dask acts. ``workers[...]["metrics"]["firsttouch"]`` in the scheduler's information says what a worker
    holds; ``client.run(firsttouch.stats)`` and ``client.run(firsttouch.trim)`` are for the allocator named here.

    ``allocator``: an allocator or its expression; ``None`` is the process's own pool. It travels as text.

    ``numa``: ``"auto"`` puts each worker on one node, its processors and its memory first: the node with the fewest
    workers on this host, of those that it may use. A number, or several, are the nodes to deal out. It needs a process
    for each worker, and has to come before its first task: workers that have run tasks are bound when they restart
    (``client.restart_workers([...])``), and stay bound until then.

    ``huge``: ``True`` or ``"thp"``, ``"2M"``, ``"1G"`` or ``False``, as in ``pool(pages(huge=...))``.

    ``limit``: a budget for the arrays of the process, beyond which a task gets a :exc:`MemoryError` that says so, where
    its worker would have been killed. ``"auto"``: what Dask lets the worker have, less what it holds at the start. A
    float is a part of its memory limit, anything else a size; more than the worker's limit is an error. Bytes count as
    asked for.

    Raises :exc:`TypeError` or :exc:`ValueError` that show what was given and what would do. What a worker refuses (a
    node it lacks, an allocator that can't serve a process, a NumPy that is not supported) is a :exc:`RuntimeError` of
    ``register_plugin`` that names the worker; on workers that join later it stands in their log. They go on with
    NumPy's own memory.
    """

    name = "firsttouch"

    def __init__(
        self,
        allocator: AllocatorLike | None = None,
        numa: Any = None,
        huge: str | bool | None = None,
        limit: str | float | None = None,
    ) -> None:
        self._choices = Choices.checked(allocator, numa, huge, limit)
        self._serving: dict[Worker, contextlib.ExitStack] = {}

    @classmethod
    def configured(cls) -> ArrayMemory:
        """What Dask's settings ``firsttouch.allocator``, ``.numa``, ``.huge`` and ``.limit`` ask for."""
        found = dask.config.get("firsttouch", None) or {}
        if not isinstance(found, dict):
            raise TypeError(f"Dask's setting firsttouch is {found!r:.40}: give {', '.join(_ARGUMENTS)} below it")
        for key in found:
            if key not in _ARGUMENTS:
                raise ValueError(f"Dask has a setting firsttouch.{key}: there are {', '.join(_ARGUMENTS)}")
        try:
            return cls(**found)
        except (TypeError, ValueError) as error:
            raise type(error)(f"Dask's settings of firsttouch: {error}") from None

    def setup(self, worker: Worker) -> None:
        """Called by Dask in the worker, before its first task or between any two."""
        try:
            with contextlib.ExitStack() as undo:
                self._begin(worker, undo)
                self._serving[worker] = undo.pop_all()
            if self._choices.numa is not None:
                binding.bind(worker, binding.usable(self._choices.numa))
        except Exception as error:
            raise RuntimeError(f"firsttouch on worker {worker.address} (name {worker.name!r}): {error}") from None

    def _begin(self, worker: Worker, undo: contextlib.ExitStack) -> None:
        if metric.NAME in worker.metrics:
            raise RuntimeError("an ArrayMemory serves it already, registered under another name")
        if self._choices.numa is not None:
            binding.usable(self._choices.numa)
        expression = self._choices.expression(budget(self._choices.limit, worker))
        serving.begin(worker, expression, repr(self))
        undo.callback(serving.end, worker)
        undo.callback(GivesBack(worker).stop)
        worker.metrics[metric.NAME] = metric.measure
        undo.callback(worker.metrics.pop, metric.NAME, None)

    def teardown(self, worker: Worker) -> None:
        """Called by Dask when the worker closes or the plugin goes; arrays that live stay valid."""
        undo = self._serving.pop(worker, None)
        if undo is not None:
            undo.close()

    def __reduce__(self) -> tuple[type[ArrayMemory], tuple[Any, ...]]:
        choices = self._choices
        return type(self), (choices.allocator, choices.numa, choices.huge, choices.limit)

    def __repr__(self) -> str:
        given = [(name, getattr(self._choices, name)) for name in _ARGUMENTS]
        return f"ArrayMemory({', '.join(f'{name}={value!r}' for name, value in given if value is not None)})"
