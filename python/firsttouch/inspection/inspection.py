"""What is behind one array, in figures that each name their source."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np

from firsttouch import _firsttouch
from firsttouch.inspection import words
from firsttouch.inspection.figures import Figures
from firsttouch.placement.arrays import receipt


@dataclass(frozen=True, repr=False)
class Inspection(Figures):
    """What is behind an array. Sizes are bytes of the whole pages that its elements lie on.

    A figure is ``None`` where nobody could tell it: it is never guessed. ``sources`` says for each figure who told it,
    or why it isn't known. ``print`` it for a table; notebooks show one by themselves.
    """

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
