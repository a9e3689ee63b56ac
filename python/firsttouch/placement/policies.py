"""NUMA policies, and what is accepted as one."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import TypeAlias

from firsttouch import _firsttouch


class Policy:
    """NUMA nodes that an array's pages come from, named as in ``numactl``.

    Parameters
    ----------
    text : str
        ``"bind:0-1"``: these nodes and no others. ``"preferred:1"``: others where node 1 has no memory left.
        ``"interleave:all"``: page by page. ``"local"``: the node of the thread that first touches a page.
        ``"blocked:0"``: slabs along axis 0, one for each node, as the first touch of a statically scheduled loop
        would place them.

    Raises
    ------
    ValueError
        If `text` is not a policy, or the machine has no such node.

    See Also
    --------
    firsttouch.numa : Its methods make policies.

    Examples
    --------
    >>> ft.placement.Policy("interleave:all")
    Policy(text='interleave:all')

    """

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = _firsttouch.policy_name(text)

    def __repr__(self) -> str:
        return f"Policy(text={self.text!r})"

    def __eq__(self, other: object) -> bool:
        return self.text == other.text if isinstance(other, Policy) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text


PolicyLike: TypeAlias = int | str | Policy
"""A node's number, a policy as text, or a :class:`Policy`."""

Nodes: TypeAlias = int | str | Iterable[int]
"""A node's number, several, or text such as ``"0-1"`` or ``"all"``."""


def policy(name: str, value: object) -> Policy:
    """Return the policy that an argument called ``name`` stands for."""
    if isinstance(value, Policy):
        return value
    try:
        if isinstance(value, str):
            return Policy(value)
        return Policy(str(_number(value)))
    except ValueError as error:
        raise ValueError(f"{name}={value!r}: {error}") from None
    except TypeError:
        raise TypeError(
            f'{name}={value!r:.60} is a {type(value).__name__}: give a node\'s number, text like "bind:0-1" or a policy'
        ) from None


def plain(numa: object) -> object:
    """Return a policy as its text, and anything else as it is."""
    return numa.text if isinstance(numa, Policy) else numa


def listed(nodes: Nodes) -> str:
    """Return nodes as they are written in a policy."""
    if isinstance(nodes, str):
        return nodes
    try:
        if isinstance(nodes, Iterable):
            return ",".join(str(_number(node)) for node in nodes)
        return str(_number(nodes))
    except TypeError:
        raise TypeError(f'nodes={nodes!r:.60}: give numbers of nodes, like 1 or [0, 1], or text like "0-1"') from None


def _number(value: object) -> int:
    if isinstance(value, bool):
        raise TypeError("a bool is no node")
    return operator.index(value)  # type: ignore[arg-type]
