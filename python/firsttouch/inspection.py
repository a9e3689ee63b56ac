"""Inspection: which pages of an array exist, what they are, and where they lie.

None of these functions touches a page, and none needs privileges.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from firsttouch import _firsttouch
from firsttouch._firsttouch import Allocator
from firsttouch._internal import units
from firsttouch._internal.arguments import byte_range
from firsttouch.placement import Receipt, receipt

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "Inspection",
    "PageMap",
    "PageState",
    "inspect",
    "pagemap",
]


class Inspection(NamedTuple):
    """Memory behind an array; sizes are bytes of the whole pages that its elements lie on.

    A figure is ``None`` where it cannot be determined; it is never guessed. ``str`` of it is a table.

    See Also
    --------
    firsttouch.inspect : Returns it.

    """

    dtype: str
    """Data type of the elements."""
    shape: tuple[int, ...]
    """Shape of the array."""
    nbytes: int
    """Bytes of all elements."""
    address: int
    """Address of the first element."""
    pages: int
    """Number of base pages from the first element in memory to the last."""
    allocator: Allocator | None
    """Allocator that made the memory; ``None`` if neither NumPy nor firsttouch did."""
    shared: bool
    """Whether the memory is shared between processes (:func:`firsttouch.shared`, a file)."""
    receipt: Receipt | None
    """What was requested and granted; ``None`` if the memory does not come from placed pages."""
    absent: int | None
    """Bytes of pages that do not exist yet."""
    zero_page: int | None
    """Bytes of pages that are the kernel's shared zero page."""
    small: int | None
    """Bytes of memory mapped by base pages."""
    huge: int | None
    """Bytes of memory mapped by huge pages."""
    real: int | None
    """Bytes of memory in all: `small` and `huge` together, known even where the page sizes are not."""
    swapped: int | None
    """Bytes in swap."""
    nodes: dict[int, int] | None
    """Bytes of memory on each NUMA node that has any; -1 stands for pages whose node the kernel does not tell."""

    @property
    def is_backed(self) -> bool | None:
        """Whether every page exists and none is the kernel's shared zero page; ``None`` if the kernel does not tell.

        Swapped-out pages exist; pages of a memory map do once the process has touched them. An empty array is backed.
        """
        if self.absent or self.zero_page:
            return False
        return None if self.absent is None or self.zero_page is None else True

    def __repr__(self) -> str:
        lines = [_title(self)]
        for label, value, *rest in _rows(self):
            lines.append(f"  {label:17} {value:>12} {rest[0]:>7}".rstrip() if rest else f"  {label:17} {value}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return units.table(_title(self), _rows(self))


#: Figures of pages, in the order of the text.
_LABELS = {
    "absent": "not there yet",
    "zero_page": "shared zero page",
    "small": "small pages",
    "huge": "huge pages",
    "real": "small or huge",
    "swapped": "swapped",
}


def _title(found: Inspection) -> str:
    """Return the array in a line."""
    shape = " x ".join(f"{count:,}" for count in found.shape) or "a single element"
    return f"array of {found.dtype}, {shape}: {units.size(found.nbytes)}"


def _rows(found: Inspection) -> Iterator[tuple[str, ...]]:
    """Yield what is known without looking at pages (label, text), then each figure (label, size, share)."""
    offset, alignment = found.address % mmap.PAGESIZE, found.address & -found.address
    begin = f"{units.size(offset)} into its page" if offset else "at the start of a page"
    yield "address", f"{found.address:#x}, aligned to {units.size(alignment)}, {begin}"
    yield "allocator", "none of NumPy's or firsttouch's" if found.allocator is None else repr(found.allocator)
    if found.shared:
        yield "shared", "processes that map it see the same memory"
    if found.receipt is not None:
        if found.receipt.asked:
            yield "asked", found.receipt.asked
            yield "granted", found.receipt.granted
        else:
            yield "origin", found.receipt.origin
        if found.receipt.why_not:
            yield "why not", "; ".join(found.receipt.why_not)
    total = found.pages * mmap.PAGESIZE
    yield "pages", f"{found.pages:,} of {units.size(mmap.PAGESIZE)}: {units.size(total)}"
    for name, label in _LABELS.items():
        size = getattr(found, name)
        if name == "real" and found.huge is not None:
            continue
        yield label, _size(size), _share(size, total)
    if found.nodes is None:
        yield "NUMA nodes", "?", ""
        return
    for node, size in found.nodes.items():
        label = f"on node {node}" if node >= 0 else "node not told"
        yield label, _size(size), _share(size, sum(found.nodes.values()))


def _size(size: int | None) -> str:
    return "?" if size is None else units.size(size) if size else "0"


def _share(size: int | None, total: int) -> str:
    return units.share(size, total) if size else ""


def inspect(a: np.ndarray) -> Inspection:
    """Return what is behind an array: its pages, their sizes and nodes, and the allocator that made them.

    Parameters
    ----------
    a : ndarray
        Array to look at: any NumPy array, views, memory maps and empty arrays included. Of a view, the pages from the
        first element in memory to the last. An array of objects is the array of pointers.

    Returns
    -------
    firsttouch.inspection.Inspection

    Raises
    ------
    TypeError
        If `a` is not a NumPy array.

    See Also
    --------
    firsttouch.inspection.pagemap : The state of each page.
    receipt : What was requested and granted.

    Notes
    -----
    No page is touched and no privileges are needed. The kernel is asked in the best way it offers. A gibibyte takes
    milliseconds, during which other threads run.

    Examples
    --------
    >>> a = ft.pages().zeros(10**6)
    >>> found = ft.inspect(a)
    >>> found.allocator, found.nbytes, found.real, found.is_backed
    (pages(), 8000000, 0, False)
    >>> a.fill(1)
    >>> print(ft.inspect(a))
    array of float64, 1,000,000: 7.63 MiB
      address ...

    """
    pages, shared, figures, nodes = _firsttouch.inspect(*byte_range("inspect()", a))
    return Inspection(
        dtype=str(a.dtype),
        shape=a.shape,
        nbytes=a.nbytes,
        address=a.__array_interface__["data"][0],
        pages=pages,
        allocator=_firsttouch.get_allocator(a),
        shared=shared,
        receipt=receipt(a),
        nodes=nodes,
        **figures,
    )


class PageState(IntEnum):
    """State of a page.

    See Also
    --------
    pagemap : Returns one for each page.

    """

    ABSENT = 0
    """Does not exist yet: the first touch faults it in."""
    ZERO = 1
    """The kernel's shared zero page: it was read before it was written."""
    SMALL = 2
    """Memory, mapped by a base page."""
    HUGE = 3
    """Memory, mapped by a huge page."""
    SWAPPED = 4
    """In swap."""
    REAL = 5
    """Memory, mapped by a base page or a huge page; which is not known."""
    PRESENT = 6
    """Memory or the shared zero page; which is not known."""
    UNKNOWN = 7
    """Not known: no source works here."""


class PageMap(NamedTuple):
    """What is known of each page of an array, in the order of the addresses.

    See Also
    --------
    pagemap : Returns it.

    """

    states: npt.NDArray[np.uint8]
    """The :class:`PageState` of each page."""
    nodes: npt.NDArray[np.int16]
    """NUMA node of each page that is backed by memory, otherwise -1. Also -1 where the kernel does not tell."""
    addresses: npt.NDArray[np.uintp]
    """Address of each page."""


def pagemap(a: np.ndarray) -> PageMap:
    """Return the state of each page of an array, from the first element in memory to the last.

    Parameters
    ----------
    a : ndarray
        Array to look at, of any kind.

    Returns
    -------
    firsttouch.inspection.PageMap
        Arrays with an item for each page, in the order of the addresses, whatever the strides.

    Raises
    ------
    TypeError
        If `a` is not a NumPy array.

    See Also
    --------
    firsttouch.inspect : The same in sums.

    Notes
    -----
    No page is touched. Swapped-out pages of shared memory count as absent, as the kernel does not tell them apart.

    Examples
    --------
    >>> from firsttouch.inspection import PageState, pagemap
    >>> a = ft.pages().zeros(10**6)
    >>> a[:1000] = 1
    >>> found = pagemap(a)
    >>> found.states.size, int((found.states == PageState.ABSENT).sum())
    (1954, 1952)

    """
    first, states, nodes = _firsttouch.pagemap(*byte_range("pagemap()", a))
    return PageMap(
        np.frombuffer(states, np.uint8),
        np.frombuffer(nodes, np.int16),
        np.arange(len(states), dtype=np.uintp) * mmap.PAGESIZE + first,
    )
