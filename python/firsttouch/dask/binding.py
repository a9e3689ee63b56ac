"""Bind workers to NUMA nodes, processors and memory together; the nodes of a host are distributed over its workers."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterable
from pathlib import Path

from distributed import Nanny, Scheduler, Status, Worker

import firsttouch
from firsttouch import _firsttouch

_GONE = Status.closed, Status.failed
_logger = logging.getLogger("distributed.worker.firsttouch")
_MOST = 1024

#: The node of this process, and the socket that reserves it among the workers of the host; both until the process ends.
_node: int | None = None
_seat: socket.socket | None = None
#: The affinity of the process before it was bound.
_processors: set[int] = set()


def usable(wanted: str | tuple[int, ...]) -> list[int]:
    """Return the nodes to distribute: all that this process may use, or those requested.

    Raises :exc:`ValueError` for a node that does not exist, or whose processors or memory the process may not use.
    """
    nodes = {node.number: node for node in firsttouch.placement.topology().nodes}
    processors, memory = _processors or os.sched_getaffinity(0), _memory_allowed()
    may = [
        number
        for number, node in nodes.items()
        if processors & set(node.processors) and node.memory and (memory is None or number in memory)
    ]
    for number in () if isinstance(wanted, str) else wanted:
        if number not in may:
            why = "this host has" if number not in nodes else "it may use"
            raise ValueError(f"numa={number}: {why} the nodes {_listed(may if number in nodes else nodes)}")
    return may if isinstance(wanted, str) else list(wanted)


def bind(worker: Worker, nodes: list[int]) -> None:
    """Bind this process, with all present and future threads, to the node that has the fewest workers.

    Raises :exc:`RuntimeError` if the worker shares its process with others, or if threads for its tasks are already
    running: a memory policy belongs to a thread, and a thread inherits it only when it starts.
    """
    global _node, _seat, _processors
    if _node in nodes:
        return
    if _shares_its_process(worker):
        raise RuntimeError(
            "numa= binds a whole process, and this one is not the worker's own: LocalCluster(processes=True) makes one"
        )
    if _node is not None or any(getattr(pool, "_threads", None) for pool in _pools_of_tasks(worker)):
        raise RuntimeError(
            "the threads of its tasks run already, and numa= cannot reach their memory policy; until it is bound by "
            f"client.restart_workers([{worker.address!r}]) or client.restart(), its arrays are served where it is"
        )
    seat, node = _sit(nodes)
    before = os.sched_getaffinity(0)
    try:
        place = _firsttouch.run_on_node(node)  # the event loop's thread, which starts those of the tasks
    except BaseException:
        seat.close()
        raise
    _node, _seat, _processors = node, seat, before
    if place.why_not is not None:
        _logger.warning("numa=%d: the memory policy stays as it was: %s", node, place.why_not)
    processors = os.sched_getaffinity(0)
    for thread in os.listdir("/proc/self/task"):
        try:
            os.sched_setaffinity(int(thread), processors)
        except OSError as error:  # the thread has ended
            _logger.debug("thread %s: %s", thread, error)


def _sit(nodes: list[int]) -> tuple[socket.socket, int]:
    """Reserve a place on the node with the fewest workers, by an abstract socket that ends with the process."""
    for seat in range(_MOST):
        for node in nodes:
            taken = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            try:
                taken.bind(f"\0firsttouch.dask/node {node}/worker {seat}")
            except OSError:
                taken.close()
            else:
                return taken, node
    raise RuntimeError(f"more than {_MOST} workers on each of the nodes {_listed(nodes)}")


def _pools_of_tasks(worker: Worker) -> list[object]:
    # The single thread of "offload" only serializes; its affinity is set like that of all other threads.
    return [pool for name, pool in worker.executors.items() if name != "offload"]


def _shares_its_process(worker: Worker) -> bool:
    servers = [*Worker._instances, *Scheduler._instances, *Nanny._instances]
    return any(server is not worker and server.status not in _GONE for server in servers)


def _memory_allowed() -> set[int] | None:
    try:
        lines = Path("/proc/self/status").read_text(errors="replace").splitlines()
    except OSError:
        return None
    (text,) = [line.split()[1] for line in lines if line.startswith("Mems_allowed_list:")] or [""]
    ends = [part.partition("-") for part in text.split(",") if part]
    return {node for first, _, last in ends for node in range(int(first), int(last or first) + 1)} or None


def _listed(nodes: Iterable[int]) -> str:
    return ", ".join(map(str, nodes)) or "none"
