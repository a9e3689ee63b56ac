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
    """Serve the arrays of Dask workers from an allocator, in every thread of their processes.

    Parameters
    ----------
    allocator : AllocatorLike, optional
        Allocator, or its expression; it travels as text. The default is the worker's own pool.
    numa : {"auto"}, int or sequence of int, optional
        Nodes to bind workers to, processors and memory. ``"auto"`` gives each worker the node with the fewest workers
        on its host; one or several numbers are the nodes to choose from. The default binds no worker.
    huge : bool or str, optional
        Page size of the pool: ``True`` or ``"thp"``, ``"2M"``, ``"1G"`` or ``False``, as for
        :func:`firsttouch.pages`.
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
    returned before Dask acts. ``workers[...]["metrics"]["firsttouch"]`` in the scheduler's information says what a
    worker holds. Binding to nodes needs one process per worker, and has to precede its first task: workers that have
    run tasks are bound when they restart.

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
        numa: Any = None,
        huge: str | bool | None = None,
        limit: str | float | None = None,
    ) -> None:
        self._choices = Choices.checked(allocator, numa, huge, limit)
        self._serving: dict[Worker, contextlib.ExitStack] = {}

    @classmethod
    def configured(cls) -> ArrayMemory:
        """Return the plugin of Dask's settings ``firsttouch.allocator``, ``.numa``, ``.huge`` and ``.limit``.

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
            raise TypeError(f"Dask's setting firsttouch is {found!r:.40}: give {', '.join(_ARGUMENTS)} below it")
        for key in found:
            if key not in _ARGUMENTS:
                raise ValueError(f"Dask has a setting firsttouch.{key}: there are {', '.join(_ARGUMENTS)}")
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
        choices = self._choices
        return type(self), (choices.allocator, choices.numa, choices.huge, choices.limit)

    def __repr__(self) -> str:
        given = [(name, getattr(self._choices, name)) for name in _ARGUMENTS]
        return f"ArrayMemory({', '.join(f'{name}={value!r}' for name, value in given if value is not None)})"
