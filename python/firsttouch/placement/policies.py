"""NUMA policies as objects, and as what people write instead of them."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from firsttouch import _firsttouch


@dataclass(frozen=True)
class Policy:
    """Which NUMA nodes an array's pages come from, by the names of ``numactl``.

    ``"bind:0-1"``: from these nodes and no others. ``"preferred:1"``: from others where node 1 has none left.
    ``"interleave:all"``: page by page. ``"local"``: from the node of whoever touches a page first. ``"blocked:0"``: in
    slabs along axis 0, one for each node, as the first touch of a static loop would place them.

    Raises :exc:`ValueError` for any other text and for nodes that the machine does not have.
    """

    text: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", _firsttouch.policy_name(self.text))

    def __str__(self) -> str:
        return self.text


PolicyLike: TypeAlias = int | str | Policy
"""A node's number, a policy's text, or a policy."""

Nodes: TypeAlias = int | str | Iterable[int]
"""A node's number, text like ``"0-1"`` or ``"all"``, or numbers."""


def policy(name: str, value: object) -> Policy:
    """The policy that ``value`` is or stands for; ``name`` is the argument's."""
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


def listed(nodes: Nodes) -> str:
    """Nodes as the text of a policy has them."""
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
