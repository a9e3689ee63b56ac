"""The array that :func:`firsttouch.pagemap` returns."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt

from firsttouch import _firsttouch
from firsttouch.inspection.states import PageState


class PageMap(np.ndarray[tuple[int], np.dtype[np.uint8]]):
    """One :class:`~firsttouch.PageState` for each page, and what else is known. What is computed of it is plain."""

    sources: npt.NDArray[np.uint8]
    """Who said so: a :class:`~firsttouch.PageSource` for each page."""
    nodes: npt.NDArray[np.int16]
    """The NUMA node of each page that is real, else -1; -1 too where nobody tells."""
    page_size: int
    """Bytes of a page."""
    _ranges: npt.NDArray[np.uintp]

    @property
    def addresses(self) -> npt.NDArray[np.uintp]:
        """Where each page begins."""
        first, end = self._ranges.astype(np.intp).T  # addresses of programs fit
        counts = (end - first) // self.page_size
        within = np.arange(self.size) - np.repeat(counts.cumsum() - counts, counts)
        found = np.repeat(first, counts) + within * self.page_size
        return np.asarray(found, np.uintp)

    def counts(self) -> dict[PageState, int]:
        """How many pages are in each state that occurs."""
        found = Counter(np.asarray(self).tolist())
        return {state: found[state] for state in PageState if found[state]}

    def __array_finalize__(self, of: object) -> None:
        if isinstance(of, PageMap) and of.shape == self.shape and hasattr(of, "sources"):
            self.sources, self.nodes, self.page_size, self._ranges = of.sources, of.nodes, of.page_size, of._ranges

    def __array_wrap__(self, array: Any, context: object = None, return_scalar: bool = False) -> Any:
        """Sums and comparisons are plain arrays and numbers."""
        return array[()] if return_scalar else np.asarray(array)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """A moment may be kept in a file, or drawn by another process."""
        if not hasattr(self, "sources"):  # a part of one
            return np.asarray(self).__reduce_ex__(protocol)
        return _kept, (np.asarray(self), self.sources, self.nodes, self.page_size, self._ranges)

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]


def _kept(found: Any, sources: Any, nodes: Any, page_size: int, ranges: Any) -> PageMap:
    """What was pickled."""
    made: PageMap = found.view(PageMap)
    made.sources, made.nodes, made.page_size, made._ranges = sources, nodes, page_size, ranges
    return made


def states(array: np.ndarray, function: str) -> npt.NDArray[np.uint8]:
    """The state of each page and nothing else."""
    return np.frombuffer(_firsttouch.pagemap(array, False, function)[0], np.uint8)


def pagemap(a: np.ndarray) -> PageMap:
    """The state of each page that elements of ``a`` lie on, as an array of uint8; compare it with :class:`PageState`.

    The array is a :class:`~firsttouch.inspection.page_map.PageMap`, which also has, page by page, ``sources`` (who said
    so), ``nodes`` (the NUMA node, or -1 where the page is not real or nobody tells) and ``addresses``. Pages come in
    the order of their addresses, whatever the strides; pages that a view skips are left out. No page is touched.

    Swapped-out pages of shared memory count as not there: the kernel doesn't tell them apart.

    Raises :exc:`TypeError` where ``a`` is not a NumPy array.

    >>> a = np.zeros(10**6)
    >>> (ft.pagemap(a) == ft.PageState.ABSENT).mean()
    0.99
    """
    found, sources, nodes, ranges, page_size = _firsttouch.pagemap(a, True, "pagemap")
    made = np.frombuffer(found, np.uint8).view(PageMap)
    made.sources = np.frombuffer(sources, np.uint8)
    made.nodes = np.frombuffer(nodes, np.int16)
    made.page_size, made._ranges = page_size, np.frombuffer(ranges, np.uintp).reshape(-1, 2)
    return made
