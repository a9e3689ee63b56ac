"""NUMA nodes: the topology, and a block of code on one of them."""

from __future__ import annotations

import operator
import threading
import warnings
from itertools import starmap
from types import TracebackType
from typing import NamedTuple

from firsttouch import _firsttouch
from firsttouch._firsttouch import current_node, highest_node

__all__ = ["Node", "Topology", "current_node", "highest_node", "run_on", "topology"]


class Node(NamedTuple):
    """A NUMA node; sizes are in bytes.

    See Also
    --------
    firsttouch.topology : Returns all of them.

    """

    number: int
    """Number of the node."""
    processors: tuple[int, ...]
    """Its processors' numbers."""
    memory: int
    """Total memory."""
    free: int
    """Free memory."""
    available: int
    """Free memory and page cache that can be reclaimed."""
    distances: tuple[int, ...]
    """Distance to every node that is online; 10 is the node's own memory."""


class Topology:
    """The NUMA nodes that are online; ``repr`` of it is a table.

    See Also
    --------
    firsttouch.topology : Returns it.

    """

    nodes: tuple[Node, ...]
    """The nodes, by ascending number."""

    def __init__(self, nodes: tuple[Node, ...]) -> None:
        self.nodes = nodes

    def __repr__(self) -> str:
        to = " ".join(f"{node.number:>4}" for node in self.nodes)
        lines = [f"node  {'processors':<16} {'memory':>10} {'free':>10}  to node {to}"]
        for node in self.nodes:
            distances = " ".join(f"{distance:>4}" for distance in node.distances)
            processors = _ranges(node.processors) or "none"
            sizes = f"{_size(node.memory):>10} {_size(node.free):>10}"
            lines.append(f"{node.number:>4}  {processors:<16} {sizes}          {distances}")
        return "\n".join(lines)


def topology() -> Topology:
    """Return the machine's NUMA nodes: processors, memory and distances.

    Returns
    -------
    firsttouch.placement.Topology

    See Also
    --------
    current_node : The node of this thread.

    Examples
    --------
    >>> print(ft.topology())
    node  processors ...
    >>> [node.number for node in ft.topology().nodes][0]
    0

    """
    return Topology(tuple(starmap(_node, _firsttouch.numa_nodes())))


def _node(number: int, processors: list[int], memory: tuple[int, int, int] | None, distances: list[int]) -> Node:
    total, free, available = memory or (0, 0, 0)
    return Node(number, tuple(processors), total, free, available, tuple(distances))


class run_on:
    """Run the current thread on a node's processors, with a preference for its memory; restore both afterwards.

    Parameters
    ----------
    node : int
        Number of the node.

    Raises
    ------
    TypeError
        If `node` is not an integer.
    ValueError
        If there is no such node, or none of its processors may be used.
    RuntimeError
        If the block ends in another thread.

    Warns
    -----
    RuntimeWarning
        If the thread's memory policy has to stay as it is.

    See Also
    --------
    topology : The nodes.

    Notes
    -----
    Only the current thread is affected; threads that it starts inherit both. A memory policy that confines the process
    to certain nodes (numactl, Slurm) is kept, and processors outside the present affinity are not used.

    Examples
    --------
    >>> with ft.run_on(0):
    ...     ft.current_node()
    0

    """

    def __init__(self, node: int) -> None:
        try:
            number = -1 if isinstance(node, bool) else operator.index(node)
        except TypeError:
            raise TypeError(f"run_on() takes a node's number, not {type(node).__name__}: {node!r:.40}") from None
        if not 0 <= number < 1024:
            raise ValueError(f"node={node!r}: this machine's nodes are 0 to {highest_node()}")
        self._node = number
        self._before: dict[int, list[_firsttouch.ThreadPlace]] = {}  # by thread, because an object may be shared

    def __enter__(self) -> run_on:
        before = _firsttouch.run_on_node(self._node)
        try:
            if before.why_not is not None:
                warnings.warn(
                    f"run_on({self._node}): the thread's memory policy stays as it was: {before.why_not}",
                    RuntimeWarning,
                    stacklevel=2,
                )
            self._before.setdefault(threading.get_ident(), []).append(before)
        except BaseException:  # warnings may be errors; no block is open then
            before.restore()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        before = self._before.get(threading.get_ident())
        if not before:
            raise RuntimeError(
                "run_on() ends in another thread than it began in: processors and memory policies belong to threads"
            )
        before.pop().restore()

    def __repr__(self) -> str:
        return f"run_on({self._node})"


def _ranges(numbers: tuple[int, ...]) -> str:
    found: list[list[int]] = []
    for number in numbers:
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


def _size(nbytes: int) -> str:
    return f"{nbytes / 2**30:,.1f} GiB" if nbytes >= 2**30 else f"{nbytes / 2**20:,.0f} MiB"
