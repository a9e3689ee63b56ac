"""The memory behind one array, in figures that each name their source."""

from __future__ import annotations

from typing import Any

import numpy as np

from firsttouch import _firsttouch
from firsttouch.inspection import words
from firsttouch.inspection.figures import Figures
from firsttouch.placement.arrays import receipt


class Inspection(Figures):
    """Memory behind an array; sizes are bytes of the whole pages that its elements lie on.

    A figure is ``None`` where it cannot be determined; it is never guessed. ``str`` of it is a table, and notebooks
    show one by themselves.

    See Also
    --------
    firsttouch.inspect : Returns it.

    """

    __slots__ = ()

    def as_dict(self) -> dict[str, Any]:
        """Return all figures in plain types, the allocator as its expression.

        Returns
        -------
        dict of str to object

        """
        found = self._asdict()
        found["shape"] = list(self.shape)
        found["allocator"] = None if self.allocator is None else repr(self.allocator)
        found["receipt"] = None if self.receipt is None else self.receipt._asdict()
        return found

    def __str__(self) -> str:
        return words.text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return words.table(self)


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
    pagemap : The state of each page.
    receipt : What was requested and granted.

    Notes
    -----
    No page is touched and no privileges are needed. The kernel is asked in the best way it offers, which ``sources``
    names for each figure. A gibibyte takes milliseconds, during which other threads run.

    Examples
    --------
    >>> a = ft.pages().zeros(10**6)
    >>> found = ft.inspect(a)
    >>> found.allocator, found.nbytes, found.real
    (pages(huge=False), 8000000, 0)
    >>> print(found)
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
