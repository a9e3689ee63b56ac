"""`numa`: pages on a node, and policies."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Literal, TypeAlias

from firsttouch._firsttouch import Allocator, make
from firsttouch.placement.policies import Nodes, Policy, PolicyLike, listed, plain

Huge: TypeAlias = Literal[False] | str | Sequence[Literal[False] | str]
"""``False``, ``"thp"``, a size such as ``"2M"`` or ``"1G"``, or several of these, in order of preference."""


class Numa:
    """Return an allocator of pages on a node, or by any policy; its methods make policies.

    The same as :func:`firsttouch.pages` with `numa`.

    Parameters
    ----------
    numa : int, str or Policy
        Node or policy, such as ``1`` or ``"interleave:all"``.
    huge, populate, lock, strict, progress : optional
        As for :func:`firsttouch.pages`.

    Returns
    -------
    Allocator

    Raises
    ------
    TypeError, ValueError
        If an argument is not one of the above, or this machine has no such page size or node.

    See Also
    --------
    pages : Pages without a policy.
    migrate : Move an existing array.

    Examples
    --------
    >>> ft.receipt(ft.numa(0).zeros(10**6)).numa
    'bind:0'
    >>> ft.numa.preferred(0)
    Policy(text='preferred:0')

    """

    __name__ = "numa"

    def __call__(
        self,
        numa: PolicyLike,
        *,
        huge: Huge = False,
        populate: bool | int = False,
        lock: bool = False,
        strict: bool = False,
        progress: bool = False,
    ) -> Allocator:
        """Return an allocator of pages that come from where a policy says; see the class."""
        return make("numa", plain(numa), huge=huge, populate=populate, lock=lock, strict=strict, progress=progress)

    def __repr__(self) -> str:
        return "<function firsttouch.numa>"

    def bind(self, nodes: Nodes) -> Policy:
        """Return a policy of these nodes and no others.

        Parameters
        ----------
        nodes : int, str or iterable of int
            Nodes, such as ``1``, ``[0, 1]``, ``"0-1"`` or ``"all"``.

        Returns
        -------
        firsttouch.placement.Policy

        Notes
        -----
        Where these nodes have no memory left, the kernel ends a process; :meth:`preferred` uses others.

        """
        return Policy(f"bind:{listed(nodes)}")

    def preferred(self, node: int) -> Policy:
        """Return a policy of one node, and of others where it has no memory left.

        Parameters
        ----------
        node : int
            Number of the node.

        Returns
        -------
        firsttouch.placement.Policy

        """
        return Policy(f"preferred:{listed(node)}")

    def interleave(self, nodes: Nodes = "all") -> Policy:
        """Return a policy that interleaves pages over nodes.

        Parameters
        ----------
        nodes : int, str or iterable of int, optional
            Nodes, such as ``[0, 1]`` or ``"0-1"``. The default is all of them.

        Returns
        -------
        firsttouch.placement.Policy

        """
        return Policy(f"interleave:{listed(nodes)}")

    def local(self) -> Policy:
        """Return the policy of the node that first touches a page, even if the thread prefers another.

        Returns
        -------
        firsttouch.placement.Policy

        """
        return Policy("local")

    def blocked(self, axis: int = 0) -> Policy:
        """Return a policy of equal slabs along an axis, one for each node.

        Parameters
        ----------
        axis : int, optional
            Axis; negative values count from the last.

        Returns
        -------
        firsttouch.placement.Policy

        Raises
        ------
        TypeError
            If `axis` is not an integer.

        Notes
        -----
        firsttouch's constructors know shape and order. Under :func:`firsttouch.install` and :func:`firsttouch.use`
        only the number of bytes is known, and slabs are of bytes, which is axis 0 in C order; the receipt says so for
        other axes.

        """
        if isinstance(axis, bool) or not hasattr(axis, "__index__"):
            raise TypeError(f"axis={axis!r:.40} is {type(axis).__name__}: give an axis by its number, like 0 or -1")
        return Policy(f"blocked:{operator.index(axis)}")


numa = Numa()
