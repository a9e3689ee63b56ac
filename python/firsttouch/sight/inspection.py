"""What is behind one array, in figures that each name their source."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any

from firsttouch import _firsttouch
from firsttouch._firsttouch import Allocator
from firsttouch.placement.arrays import Receipt, receipt
from firsttouch.sight import words

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True, repr=False)
class Inspection:
    """What is behind an array. Sizes are bytes of the whole pages that its elements lie on.

    A figure is ``None`` where nobody could tell it: it is never guessed. ``sources`` says for each figure who told it,
    or why it isn't known. ``print`` it for a table; notebooks show one by themselves.
    """

    dtype: str
    """The elements' type."""
    shape: tuple[int, ...]
    """As the array's."""
    nbytes: int
    """Bytes of all elements."""
    address: int
    """Of the first element."""
    alignment: int
    """The largest power of two that divides the address; 0 for an address of 0."""
    offset: int
    """Bytes from the beginning of its page to the address."""
    page_size: int
    """Bytes of a base page."""
    pages: int
    """Number of base pages that elements lie on."""
    allocator: Allocator | None
    """Who made the memory; ``None`` where NumPy did not allocate it (a memory map, another library's buffer)."""
    shared: bool
    """Whether processes share it: who writes to it writes to the same memory (:func:`firsttouch.shared`, a file)."""
    receipt: Receipt | None
    """What was asked for and granted; ``None`` where the memory does not come from placed pages."""
    absent: int | None
    """Not there yet: the first touch makes them."""
    zero_page: int | None
    """The kernel's zero page, which all share: read before they were written."""
    small: int | None
    """Memory, mapped by base pages."""
    huge: int | None
    """Memory, mapped by huge pages."""
    real: int | None
    """Memory of the array's own: ``small`` and ``huge`` together, known also where their sizes are not."""
    swapped: int | None
    """In swap."""
    cached: int | None
    """In the page cache (a file, shared memory), but not touched by this process."""
    locked: int | None
    """In memory and locked there (mlock); counted above, too."""
    nodes: dict[int, int] | None
    """Bytes of real pages on each NUMA node that has any; -1 is those of which the kernel names none just now."""
    sources: dict[str, str]
    """For each figure from ``absent`` to ``nodes``: who told it."""

    def as_dict(self) -> dict[str, Any]:
        """All of it in plain types, for JSON and tables; the allocator as its expression."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        found["shape"] = list(self.shape)
        found["allocator"] = None if self.allocator is None else repr(self.allocator)
        found["receipt"] = None if self.receipt is None else asdict(self.receipt)
        return found

    def __str__(self) -> str:
        return words.text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return words.table(self)


def inspect(a: np.ndarray) -> Inspection:
    """What is behind ``a``: which of its pages exist, how large they are, on which nodes, and who made the memory.

    For any NumPy array: made by this package or not, a view (pages that it skips are not counted), with negative
    strides, read-only, a memory map, empty. An array of objects is the array of pointers. No page is touched, no
    privileges are needed; the kernel is asked by the best way it has, and ``sources`` names it. A gibibyte takes
    milliseconds. Other threads go on meanwhile.

    Raises :exc:`TypeError` where ``a`` is not a NumPy array.

    >>> print(ft.inspect(np.zeros(10**6)))
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
