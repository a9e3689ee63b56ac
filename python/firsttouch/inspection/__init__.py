"""Inspection: which pages of an array exist, what they are, and where they lie.

None of these functions touches a page, and none needs privileges.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from enum import IntEnum
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from _firsttouch_start import units
from firsttouch import _firsttouch
from firsttouch._firsttouch import Allocator
from firsttouch.allocators import escape
from firsttouch.placement import Receipt, receipt

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "Inspection",
    "NotBackedWarning",
    "PageMap",
    "PageSource",
    "PageState",
    "check_backed",
    "inspect",
    "pagemap",
    "plot_pagemap",
]


class Inspection(NamedTuple):
    """Memory behind an array; sizes are bytes of the whole pages that its elements lie on.

    A figure is ``None`` where it cannot be determined; it is never guessed. ``str`` of it is a table, and notebooks
    show one by themselves.

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
    alignment: int
    """Largest power of two that divides the address; 0 for an address of 0."""
    offset: int
    """Bytes from the start of the page to the address."""
    page_size: int
    """Bytes per base page."""
    pages: int
    """Number of base pages that elements lie on."""
    allocator: Allocator | None
    """Allocator that made the memory; ``None`` if NumPy did not allocate it."""
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
    cached: int | None
    """Bytes in the page cache, but not touched by this process."""
    locked: int | None
    """Bytes locked in memory (mlock); also counted above."""
    nodes: dict[int, int] | None
    """Bytes of memory on each NUMA node that has any; -1 stands for pages whose node the kernel does not tell."""
    sources: dict[str, str]
    """Source of each figure from `absent` to `nodes`."""

    @property
    def is_backed(self) -> bool | None:
        """Whether every page exists and none is the kernel's shared zero page; ``None`` if the kernel does not tell.

        Swapped-out pages exist, and so do pages of a memory map that are in the page cache. An empty array is backed.
        """
        if self.absent or self.zero_page:
            return False
        return None if self.absent is None or self.zero_page is None else True

    def as_dict(self) -> dict[str, Any]:
        """Return all figures in plain types, the allocator as its expression.

        Returns
        -------
        dict of str to object

        """
        return self._asdict() | {
            "shape": list(self.shape),
            "allocator": None if self.allocator is None else repr(self.allocator),
            "receipt": None if self.receipt is None else self.receipt._asdict(),
        }

    def __str__(self) -> str:
        lines = [_title(self), *(f"  {label:17} {value}" for label, value in _facts(self).items())]
        for label, size, share, source in _figures(self):
            lines.append(f"  {label:17} {size:>12} {share:>7}   {source}".rstrip())
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        left, right = 'style="text-align:left"', 'style="text-align:right"'
        rows = [
            f'<tr><th {left}>{label}</th><td colspan="3" {left}>{escape(value)}</td></tr>'
            for label, value in _facts(self).items()
        ]
        rows += [
            f"<tr><th {left}>{label}</th><td {right}>{size}</td><td {right}>{share}</td>"
            f"<td {left}>{escape(source)}</td></tr>"
            for label, size, share, source in _figures(self)
        ]
        return f"<table><caption>{escape(_title(self))}</caption>{''.join(rows)}</table>"


#: Figures of pages, in the order of the text.
_LABELS = {
    "absent": "not there yet",
    "zero_page": "shared zero page",
    "small": "small pages",
    "huge": "huge pages",
    "swapped": "swapped",
    "locked": "locked",
    "cached": "page cache only",
}


def _title(found: Inspection) -> str:
    """Return the array in a line."""
    shape = " x ".join(f"{count:,}" for count in found.shape) or "a single element"
    return f"array of {found.dtype}, {shape}: {units.size(found.nbytes)}"


def _facts(found: Inspection) -> dict[str, str]:
    """Return what is known without looking at pages."""
    begin = f"{units.size(found.offset)} into its page" if found.offset else "at the start of a page"
    rows = {
        "address": f"{found.address:#x}, aligned to {units.size(found.alignment)}, {begin}",
        "allocator": "none: NumPy did not allocate it" if found.allocator is None else repr(found.allocator),
    }
    if found.shared:
        rows["shared"] = "processes that map it see the same memory"
    if (placed := found.receipt) is not None:
        threads = f" by {placed.threads} threads" if placed.threads > 1 else ""
        granted = [
            f"huge={placed.huge!r}" if placed.huge else "",
            f"numa={placed.numa!r}" if placed.numa else "",
            f"populated{threads}" if placed.populated else "",
            "locked" if placed.locked else "",
        ]
        if placed.asked:
            rows["asked"] = placed.asked
            rows["granted"] = ", ".join(filter(None, granted)) or "small pages, lazily"
        else:
            rows["origin"] = placed.origin
        if placed.why_not:
            rows["why not"] = "; ".join(placed.why_not)
    total = units.size(found.pages * found.page_size)
    rows["pages"] = f"{found.pages:,} of {units.size(found.page_size)}: {total}"
    return rows


def _figures(found: Inspection) -> list[tuple[str, str, str, str]]:
    """Return name, size, share of all pages, and source of each figure."""
    total = found.pages * found.page_size
    rows = []
    for name, label in _LABELS.items():
        size = getattr(found, name)
        if name == "cached" and not size:
            continue
        rows.append((label, _size(size), _share(size, total), found.sources[name]))
        if name == "huge" and size is None and found.real is not None:
            rows.append(("small or huge", _size(found.real), _share(found.real, total), found.sources["real"]))
    source = found.sources["nodes"]
    if found.nodes is None:
        return [*rows, ("NUMA nodes", "?", "", source)]
    real = sum(found.nodes.values())
    for node, size in found.nodes.items():
        rows.append((f"on node {node}" if node >= 0 else "node not told", _size(size), _share(size, real), source))
    return rows


def _size(size: int | None) -> str:
    return "?" if size is None else units.size(size) if size else "0"


def _share(size: int | None, total: int) -> str:
    return units.share(size, total) if size else ""


def inspect(a: np.ndarray) -> Inspection:
    """Return what is behind an array: its pages, their sizes and nodes, and the allocator that made them.

    Parameters
    ----------
    a : ndarray
        Array to look at: any NumPy array, views, memory maps and empty arrays included. Pages that a view skips are
        not counted. An array of objects is the array of pointers.

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
    No page is touched and no privileges are needed. The kernel is asked in the best way it offers, which ``sources``
    names for each figure. A gibibyte takes milliseconds, during which other threads run.

    Examples
    --------
    >>> a = ft.pages().zeros(10**6)
    >>> found = ft.inspect(a)
    >>> found.allocator, found.nbytes, found.real, found.is_backed
    (pages(huge=False), 8000000, 0, False)
    >>> a.fill(1)
    >>> print(ft.inspect(a))
    array of float64, 1,000,000: 7.63 MiB
      address ...

    """
    found = _firsttouch.inspect(a)
    address, page_size = found["address"], found["page_size"]
    nodes, nodes_source = found["nodes"]
    figures: dict[str, tuple[int | None, str]] = found["figures"]
    return Inspection(
        dtype=str(a.dtype),
        shape=a.shape,
        nbytes=a.nbytes,
        address=address,
        alignment=address & -address,
        offset=address % page_size,
        page_size=page_size,
        pages=found["pages"],
        allocator=_firsttouch.get_allocator(a),
        shared=found["shared"],
        receipt=receipt(a),
        nodes=nodes,
        sources={name: source for name, (_, source) in figures.items()} | {"nodes": nodes_source},
        **{name: size for name, (size, _) in figures.items()},
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
    CACHED = 5
    """In the page cache (a file, shared memory), but not touched by this process."""
    REAL = 6
    """Memory, mapped by a base page or a huge page; which is not known."""
    PRESENT = 7
    """Memory or the shared zero page; which is not known."""
    UNKNOWN = 8
    """Not known: no source works here."""


class PageSource(IntEnum):
    """Source of a page's state.

    See Also
    --------
    PageMap.sources : One for each page.

    """

    NOBODY = 0
    """No source works here."""
    PAGEMAP_SCAN = 1
    """The ioctl of that name (Linux 6.7)."""
    PAGEMAP = 2
    """The entries of ``/proc/self/pagemap``."""
    MOVE_PAGES = 3
    """The system call, which also tells the node."""
    MINCORE = 4
    """The system call."""
    SMAPS = 5
    """``/proc/self/smaps``, which counts huge pages in whole mappings."""


class PageMap(NamedTuple):
    """What is known of each page of an array, in the order of the addresses.

    See Also
    --------
    pagemap : Returns it.

    """

    states: npt.NDArray[np.uint8]
    """The :class:`PageState` of each page."""
    sources: npt.NDArray[np.uint8]
    """The :class:`PageSource` of each page's state."""
    nodes: npt.NDArray[np.int16]
    """NUMA node of each page that is backed by memory, otherwise -1. Also -1 where the kernel does not tell."""
    addresses: npt.NDArray[np.uintp]
    """Address of each page."""
    page_size: int
    """Bytes per page."""

    def counts(self) -> dict[PageState, int]:
        """Return the number of pages in each state that occurs.

        Returns
        -------
        dict of PageState to int

        """
        found = Counter(self.states.tolist())
        return {state: found[state] for state in PageState if found[state]}


def pagemap(a: np.ndarray) -> PageMap:
    """Return the state of each page that elements of an array lie on.

    Parameters
    ----------
    a : ndarray
        Array to look at, of any kind.

    Returns
    -------
    firsttouch.inspection.PageMap
        Arrays with an item for each page, in the order of the addresses, whatever the strides; pages that a view skips
        are left out.

    Raises
    ------
    TypeError
        If `a` is not a NumPy array.

    See Also
    --------
    firsttouch.inspect : The same in sums.
    plot_pagemap : The same as a picture.

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
    states, sources, nodes, ranges, page_size = _firsttouch.pagemap(a, True, "pagemap")
    first, end = np.frombuffer(ranges, np.intp).reshape(-1, 2).T  # addresses of programs fit
    counts = (end - first) // page_size
    within = np.arange(len(states)) - np.repeat(counts.cumsum() - counts, counts)
    return PageMap(
        np.frombuffer(states, np.uint8),
        np.frombuffer(sources, np.uint8),
        np.frombuffer(nodes, np.int16),
        (np.repeat(first, counts) + within * page_size).astype(np.uintp),
        page_size,
    )


class NotBackedWarning(UserWarning):
    """Pages that did not exist were read in a :class:`check_backed` block: it measured the zero page.

    See Also
    --------
    check_backed : Gives this warning.

    """


class check_backed:
    """Warn if a measurement reads pages of arrays that do not exist.

    Memory that was never written has no pages of its own: every read comes from the kernel's shared zero page, which
    stays in the nearest cache, and measures nothing.

    Parameters
    ----------
    *arrays : ndarray
        Arrays that the block reads.

    Attributes
    ----------
    unbacked : list of int
        After the block, for each array: bytes that were read without memory behind them.
    first_touched : list of int
        After the block, for each array: bytes that were faulted in by a write.

    Raises
    ------
    TypeError
        If an argument is not a NumPy array.

    Warns
    -----
    firsttouch.inspection.NotBackedWarning
        If any array is `unbacked`, unless an exception leaves the block.

    Notes
    -----
    Residency is compared before and after the block. Pages that were written first are no trap for reads, but their
    page faults are part of what was measured; `first_touched` counts them, without a warning.

    Examples
    --------
    >>> b = ft.pages().zeros(10**6)
    >>> b.fill(1)
    >>> with ft.inspection.check_backed(b) as check:
    ...     total = b.sum()
    >>> check.unbacked
    [0]

    """

    def __init__(self, *arrays: np.ndarray) -> None:
        self.arrays = arrays
        self.unbacked: list[int] = []
        self.first_touched: list[int] = []
        self._before = [_states(array) for array in arrays]

    def __enter__(self) -> Self:
        self._before = [_states(array) for array in self.arrays]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        page = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096
        self.unbacked, self.first_touched = [], []
        for array, before in zip(self.arrays, self._before, strict=True):
            after = _states(array)
            if before.shape != after.shape:  # resized meanwhile: another piece of memory
                before = after * 0
            missing = (before == PageState.ABSENT) | (before == PageState.ZERO)
            made = (after == PageState.SMALL) | (after == PageState.HUGE) | (after == PageState.REAL)
            self.unbacked.append(int((after == PageState.ZERO).sum()) * page)
            self.first_touched.append(int((missing & made).sum()) * page)
        if kind is None and any(self.unbacked):
            warnings.warn(self._warning(), NotBackedWarning, stacklevel=2)

    def _warning(self) -> str:
        of = len(self.arrays)
        said = [
            f"{units.size(size)} of {f'array {at + 1} of {of}' if of > 1 else 'the array'}"
            f" ({array.dtype}, shape {array.shape})"
            for at, (array, size) in enumerate(zip(self.arrays, self.unbacked, strict=True))
            if size
        ]
        return (
            f"read without memory behind it: {', '.join(said)}. These pages were never written: every read came from "
            "the kernel's shared zero page, which stays in the nearest cache. Write to the array before measuring, "
            "as with a.fill(1), or give it pages of its own with firsttouch.touch(a)"
        )


def _states(array: np.ndarray) -> npt.NDArray[np.uint8]:
    return np.frombuffer(_firsttouch.pagemap(array, False, "check_backed")[0], np.uint8)


from firsttouch.inspection.drawing import plot_pagemap  # noqa: E402 (it draws what is declared above)
