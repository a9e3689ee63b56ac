"""The state of each page of an array."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np

from firsttouch import _firsttouch
from firsttouch.inspection.states import PageState

if TYPE_CHECKING:
    import numpy.typing as npt


class PageMap(np.ndarray[tuple[int], np.dtype[np.uint8]]):
    """State of each page of an array, with its source, node and address.

    Comparisons, sums and parts of it are plain arrays and numbers.

    Attributes
    ----------
    sources : ndarray of uint8
        The :class:`PageSource` of each page's state.
    nodes : ndarray of int16
        NUMA node of each page that is backed by memory, otherwise -1. Also -1 where the kernel does not tell.
    page_size : int
        Bytes per page.

    See Also
    --------
    firsttouch.pagemap : Returns it.

    """

    sources: npt.NDArray[np.uint8]
    nodes: npt.NDArray[np.int16]
    page_size: int
    _ranges: npt.NDArray[np.uintp]

    @property
    def addresses(self) -> npt.NDArray[np.uintp]:
        """Address of each page, as an array of uintp."""
        first, end = self._ranges.astype(np.intp).T  # addresses of programs fit
        counts = (end - first) // self.page_size
        within = np.arange(self.size) - np.repeat(counts.cumsum() - counts, counts)
        found = np.repeat(first, counts) + within * self.page_size
        return np.asarray(found, np.uintp)

    def counts(self) -> dict[PageState, int]:
        """Return the number of pages in each state that occurs.

        Returns
        -------
        dict of PageState to int

        """
        found = Counter(np.asarray(self).tolist())
        return {state: found[state] for state in PageState if found[state]}

    def __array_finalize__(self, of: object) -> None:
        if isinstance(of, PageMap) and of.shape == self.shape and hasattr(of, "sources"):
            self.sources, self.nodes, self.page_size, self._ranges = of.sources, of.nodes, of.page_size, of._ranges

    def __array_wrap__(self, array: Any, context: object = None, return_scalar: bool = False) -> Any:
        """Make sums and comparisons plain arrays and numbers."""
        return array[()] if return_scalar else np.asarray(array)

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Pickle all of it, so that it can be kept in a file or drawn by another process."""
        if not hasattr(self, "sources"):  # a part of one
            return np.asarray(self).__reduce_ex__(protocol)
        return _kept, (np.asarray(self), self.sources, self.nodes, self.page_size, self._ranges)

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]


def _kept(found: Any, sources: Any, nodes: Any, page_size: int, ranges: Any) -> PageMap:
    """Return what was pickled."""
    made: PageMap = found.view(PageMap)
    made.sources, made.nodes, made.page_size, made._ranges = sources, nodes, page_size, ranges
    return made


def states(array: np.ndarray, function: str) -> npt.NDArray[np.uint8]:
    """Return the state of each page and nothing else."""
    return np.frombuffer(_firsttouch.pagemap(array, False, function)[0], np.uint8)


def pagemap(a: np.ndarray) -> PageMap:
    """Return the state of each page that elements of an array lie on.

    Parameters
    ----------
    a : ndarray
        Array to look at, of any kind.

    Returns
    -------
    firsttouch.inspection.PageMap
        One-dimensional array of uint8, to be compared with :class:`firsttouch.inspection.PageState`. Pages are in the
        order of their addresses, whatever the strides; pages that a view skips are left out.

    Raises
    ------
    TypeError
        If `a` is not a NumPy array.

    See Also
    --------
    inspect : The same in sums.
    firsttouch.inspection.plot_pagemap : The same as a picture.

    Notes
    -----
    No page is touched. Swapped-out pages of shared memory count as absent, as the kernel does not tell them apart.

    Examples
    --------
    >>> a = ft.pages().zeros(10**6)
    >>> a[:1000] = 1
    >>> states = ft.pagemap(a)
    >>> states.size, int((states == ft.inspection.PageState.ABSENT).sum())
    (1954, 1952)

    """
    found, sources, nodes, ranges, page_size = _firsttouch.pagemap(a, True, "pagemap")
    made = np.frombuffer(found, np.uint8).view(PageMap)
    made.sources = np.frombuffer(sources, np.uint8)
    made.nodes = np.frombuffer(nodes, np.int16)
    made.page_size, made._ranges = page_size, np.frombuffer(ranges, np.uintp).reshape(-1, 2)
    return made
