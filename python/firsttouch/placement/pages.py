"""What `pages` is given, checked and passed on; and `numa`, which is pages on a node."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Literal, TypeAlias

from firsttouch import _firsttouch
from firsttouch._firsttouch import Allocator
from firsttouch._internal import validation as arguments
from firsttouch.placement.bar import bar
from firsttouch.placement.policies import Nodes, Policy, PolicyLike, listed, policy

Huge: TypeAlias = Literal[False] | str | Sequence[Literal[False] | str]
"""``False``, ``"thp"``, a size like ``"2M"`` or ``"1G"``, or several of these: the first that can be had."""


def placed(
    huge: Huge,
    populate: bool | int = False,
    lock: bool = False,
    numa: PolicyLike | None = None,
    strict: bool = False,
    progress: bool = False,
    *,
    plain: bool = True,
) -> Allocator:
    """Pages as asked for; the plain ones where nothing but ``huge`` is and these may be."""
    names = _page_sizes(huge)
    threads = _threads(populate)
    lock, strict = arguments.flag("lock", lock), arguments.flag("strict", strict)
    if arguments.flag("progress", progress):
        if not threads:
            raise ValueError("progress=True shows how far a prefault is: give populate=True, too")
        _firsttouch.set_bar(bar)
    chosen = None if numa is None else str(policy("numa", numa))
    if plain and not (threads or lock or strict or chosen) and names in ([], ["thp"]):
        return _firsttouch.pages("thp" if names else False)
    return _firsttouch.placed_pages(names, threads, lock, chosen, strict, progress)


def _page_sizes(huge: object) -> list[str]:
    if huge is False:
        return []
    several = isinstance(huge, (tuple, list)) and len(huge) > 0
    wishes: Sequence[object] = huge if several else [huge]  # type: ignore[assignment]
    names: list[str] = []
    for wish in wishes:
        if wish is False and several:
            names.append("")
            break
        try:
            if not isinstance(wish, str) or wish == "":
                raise ValueError("")
            names.append(_firsttouch.page_size_name(wish))
        except ValueError as error:
            why = f" ({error})" if str(error) else ""
            raise ValueError(
                f'huge={huge!r}: give False or "thp" (transparent huge pages), a size of explicit ones, or several of '
                f'these in the order of preference, like ("1G", "2M", "thp"){why}'
            ) from None
    if len(names) > 4:
        raise ValueError(f"huge={huge!r}: give at most four")
    return names


def _threads(populate: object) -> int:
    if isinstance(populate, bool):
        return -1 if populate else 0
    return arguments.threads("populate", populate, "False, True, or")


class Numa:
    """``numa(1)``: pages on node 1; ``numa("interleave:all")``: by any policy. Its methods make policies.

    The same as :func:`pages` with ``numa=``, whose other arguments it takes too.
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
        """Pages that come from where a policy says."""
        return placed(huge, populate, lock, policy("numa", numa), strict, progress)

    def __repr__(self) -> str:
        return "<function firsttouch.numa>"

    def bind(self, nodes: Nodes) -> Policy:
        """From these nodes and no others; where they have no memory left, the kernel ends a process."""
        return Policy(f"bind:{listed(nodes)}")

    def preferred(self, node: int) -> Policy:
        """From this node, and from others where it has none left."""
        return Policy(f"preferred:{listed(node)}")

    def interleave(self, nodes: Nodes = "all") -> Policy:
        """Page by page over these nodes."""
        return Policy(f"interleave:{listed(nodes)}")

    def local(self) -> Policy:
        """From the node of whoever touches a page first, also where the thread prefers another."""
        return Policy("local")

    def blocked(self, axis: int = 0) -> Policy:
        """In equal slabs along an axis, one for each node; negative axes count from the last.

        Our constructors know shape and order. Where bytes alone are known (NumPy's own functions under :func:`install`
        and :func:`use`) slabs are of bytes, which is axis 0 in C order; :func:`receipt` says so for other axes.
        """
        if isinstance(axis, bool) or not hasattr(axis, "__index__"):
            raise TypeError(f"axis={axis!r:.40} is {type(axis).__name__}: give an axis by its number, like 0 or -1")
        return Policy(f"blocked:{operator.index(axis)}")


numa = Numa()
