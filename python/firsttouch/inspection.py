"""Inspection: which pages of an array exist, what they are, and where they lie.

None of these functions touches a page, and none needs privileges.
"""

from __future__ import annotations

import mmap
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import IntEnum
from types import TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from firsttouch import _firsttouch
from firsttouch._firsttouch import Allocator
from firsttouch._internal import tables, units
from firsttouch.placement import Receipt, receipt

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = [
    "Inspection",
    "NotBackedWarning",
    "PageMap",
    "PageState",
    "check_backed",
    "inspect",
    "pagemap",
    "plot_pagemap",
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
        lines = [_title(self)]
        for label, value, *rest in _rows(self):
            share, source = rest or ("", "")
            lines.append(
                f"  {label:17} {value:>12} {share:>7}   {source}".rstrip() if rest else f"  {label:17} {value}"
            )
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return tables.html(_title(self), _rows(self))


#: Figures of pages, in the order of the text.
_LABELS = {
    "absent": "not there yet",
    "zero_page": "shared zero page",
    "small": "small pages",
    "huge": "huge pages",
    "real": "small or huge",
    "swapped": "swapped",
    "locked": "locked",
    "cached": "page cache only",
}


def _title(found: Inspection) -> str:
    """Return the array in a line."""
    shape = " x ".join(f"{count:,}" for count in found.shape) or "a single element"
    return f"array of {found.dtype}, {shape}: {units.size(found.nbytes)}"


def _rows(found: Inspection) -> Iterator[tuple[str, ...]]:
    """Yield what is known without looking at pages (label, text), then each figure (label, size, share, source)."""
    begin = f"{units.size(found.offset)} into its page" if found.offset else "at the start of a page"
    yield "address", f"{found.address:#x}, aligned to {units.size(found.alignment)}, {begin}"
    yield "allocator", "none: NumPy did not allocate it" if found.allocator is None else repr(found.allocator)
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
    total = found.pages * found.page_size
    yield "pages", f"{found.pages:,} of {units.size(found.page_size)}: {units.size(total)}"
    for name, label in _LABELS.items():
        size = getattr(found, name)
        if (name == "cached" and not size) or (name == "real" and found.huge is not None):
            continue
        yield label, _size(size), _share(size, total), found.sources[name]
    if found.nodes is None:
        yield "NUMA nodes", "?", "", found.sources["nodes"]
        return
    for node, size in found.nodes.items():
        label = f"on node {node}" if node >= 0 else "node not told"
        yield label, _size(size), _share(size, sum(found.nodes.values())), found.sources["nodes"]


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
    (pages(), 8000000, 0, False)
    >>> a.fill(1)
    >>> print(ft.inspect(a))
    array of float64, 1,000,000: 7.63 MiB
      address ...

    """
    address, pages, shared, figures, nodes, nodes_source = _firsttouch.inspect(a)
    return Inspection(
        dtype=str(a.dtype),
        shape=a.shape,
        nbytes=a.nbytes,
        address=address,
        alignment=address & -address,
        offset=address % mmap.PAGESIZE,
        page_size=mmap.PAGESIZE,
        pages=pages,
        allocator=_firsttouch.get_allocator(a),
        shared=shared,
        receipt=receipt(a),
        nodes=nodes,
        sources={name: source for name, _, source in figures} | {"nodes": nodes_source},
        **{name: size for name, size, _ in figures},
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
    states, nodes = (np.frombuffer(runs, np.intp).reshape(-1, 3).T for runs in _firsttouch.pagemap(a, True, "pagemap"))
    first, end, state = states
    counts = (end - first) // mmap.PAGESIZE
    within = np.arange(counts.sum()) - np.repeat(counts.cumsum() - counts, counts)
    addresses = np.repeat(first, counts) + within * mmap.PAGESIZE
    first, end, node = np.append(nodes, [[0], [0], [-1]], axis=1)  # the last is for pages before the first run
    run = np.searchsorted(first[:-1], addresses, "right") - 1
    return PageMap(
        np.repeat(state, counts).astype(np.uint8),
        np.where(addresses < end[run], node[run], -1).astype(np.int16),
        addresses.astype(np.uintp),
        mmap.PAGESIZE,
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
        self.unbacked, self.first_touched = [], []
        for array, before in zip(self.arrays, self._before, strict=True):
            after = _states(array)
            if before.shape != after.shape:  # resized meanwhile: another piece of memory
                before = after * 0
            missing = (before == PageState.ABSENT) | (before == PageState.ZERO)
            made = (after == PageState.SMALL) | (after == PageState.HUGE) | (after == PageState.REAL)
            self.unbacked.append(int((after == PageState.ZERO).sum()) * mmap.PAGESIZE)
            self.first_touched.append(int((missing & made).sum()) * mmap.PAGESIZE)
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
    first, end, state = np.frombuffer(_firsttouch.pagemap(array, False, "check_backed")[0], np.intp).reshape(-1, 3).T
    return np.repeat(state, (end - first) // mmap.PAGESIZE).astype(np.uint8)


# ---- Pictures: a strip for each moment, coloured by the states of the pages ------------------------------------------

#: From the bottom of a strip to its top: resident memory fills it like a level. Distinguishable with any colour
#: vision.
_LOOKS = {
    PageState.HUGE: ("huge pages", "#0b4f8a"),
    PageState.SMALL: ("small pages", "#56b4e9"),
    PageState.REAL: ("small or huge pages", "#2f86c4"),
    PageState.CACHED: ("page cache only", "#009e73"),
    PageState.SWAPPED: ("swapped", "#d55e00"),
    PageState.PRESENT: ("real or zero page", "#cc79a7"),
    PageState.ZERO: ("shared zero page", "#f0b429"),
    PageState.ABSENT: ("not there yet", "#e9e9e6"),
    PageState.UNKNOWN: ("not known", "#4d4d4d"),
}
_COLUMNS = 1200
#: The least share of a column for a state that occurs in it.
_VISIBLE = 0.05


def plot_pagemap(*moments: npt.NDArray[Any] | PageMap, labels: Sequence[str] | None = None) -> Any:
    """Draw the pages of an array, one strip per moment.

    Parameters
    ----------
    *moments : ndarray or PageMap
        What :func:`pagemap` returned earlier, or an array to be drawn as it is now.
    labels : sequence of str, optional
        Label of each strip. The default for two is "before" and "after".

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ImportError
        If matplotlib is not installed (``pip install matplotlib``).
    TypeError
        If a moment is not a NumPy array.
    ValueError
        If there is no moment, or not one label for each.

    See Also
    --------
    pagemap : The states that are drawn.

    Notes
    -----
    Pages run from left to right in the order of their addresses. Where there are more pages than columns, a column is
    divided in proportion, and every state that occurs in it can be seen.

    Examples
    --------
    >>> a = ft.pages().zeros(10**6)
    >>> before = ft.inspection.pagemap(a)
    >>> a[: len(a) // 2] = 1
    >>> ft.inspection.plot_pagemap(before, a)
    <Figure size ... with 2 Axes>

    """
    if not moments:
        raise ValueError("plot_pagemap() needs an array, or what pagemap() returned")
    maps = [moment if isinstance(moment, PageMap) else pagemap(moment) for moment in moments]
    default = {1: [""], 2: ["before", "after"]}.get(len(maps), list(map(str, range(1, len(maps) + 1))))
    names = default if labels is None else list(labels)
    if len(names) != len(maps):
        raise ValueError(f"labels={names!r}: give one for each of the {len(maps)} moments")
    try:
        from matplotlib import pyplot
        from matplotlib.patches import Patch
    except ImportError as error:
        raise ImportError(f"plot_pagemap() needs matplotlib ({error}): pip install matplotlib") from None
    figure, axes = pyplot.subplots(
        len(maps), figsize=(9, 0.9 + 0.8 * len(maps)), layout="constrained", sharex=True, squeeze=False
    )
    per, unit = units.scale(max(1, *(found.states.size * found.page_size for found in maps)))
    for ax, found, name in zip(axes.flat, maps, names, strict=True):
        shares = _shares(found.states)
        edges = np.linspace(0, found.states.size * found.page_size / per, shares.shape[1])
        ax.stackplot(edges, shares, colors=[colour for _, colour in _LOOKS.values()], step="post")
        ax.set_title(name, loc="left", weight="bold", fontsize=9)
        ax.set_title(_summary(found), loc="right", fontsize=9)
        ax.set(ylim=(0, 1), yticks=[])
        ax.margins(x=0)
    axes[-1, 0].set_xlabel(f"place in the array's pages, {unit}")
    seen = [look for state, look in _LOOKS.items() if any(state in found.counts() for found in maps)]
    figure.legend(
        handles=[Patch(color=colour, label=label) for label, colour in seen], loc="outside lower center", ncols=5
    )
    return figure


def _shares(pages: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """Return the share of each state in each column; the last column, which ends the picture, is there twice."""
    columns = min(_COLUMNS, pages.size)
    if columns == 0:
        return np.zeros((len(_LOOKS), 1))
    first = np.arange(columns) * pages.size // columns
    counts = np.array([np.add.reduceat(pages == state, first, dtype=np.intp) for state in _LOOKS])
    shares = np.maximum(counts / counts.sum(axis=0), _VISIBLE * (counts > 0))
    return np.repeat(shares / shares.sum(axis=0), [1] * (columns - 1) + [2], axis=1)


def _summary(found: PageMap) -> str:
    """Return the sizes of the states that occur, the largest first."""
    counts = sorted(found.counts().items(), key=lambda each: -each[1])
    return ", ".join(f"{units.size(count * found.page_size)} {_LOOKS[state][0]}" for state, count in counts) or "empty"
