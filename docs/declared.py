"""Writes the reference page of allocators from their declaration, when the site is built."""

from pathlib import Path

from firsttouch import _firsttouch

_PAGE = """Allocators
==========

Allocators decide where the memory of arrays comes from. Sources take it from somewhere; adaptors change what another
allocator does, in any order. The ``repr`` of an allocator is the expression that creates it (see :doc:`expressions`).

{sections}
Classes, and allocators of your own
-----------------------------------

.. currentmodule:: firsttouch

.. autosummary::
   :toctree: api/

   Allocator
   allocators.from_functions
   custom.OwnAllocator
"""


def write(page: Path) -> None:
    """Write the page, if it says anything new."""
    sections = ""
    for title, adaptors, more in (("Sources", False, ["numpy_default"]), ("Adaptors", True, [])):
        names = [name for name, is_adaptor, *_ in _firsttouch.declared() if is_adaptor == adaptors]
        listed = "".join(f"   {name}\n" for name in [*names, *more])
        sections += f"{title}\n{'-' * len(title)}\n\n.. currentmodule:: firsttouch\n\n"
        sections += f".. autosummary::\n   :toctree: api/\n\n{listed}\n"
    text = _PAGE.format(sections=sections)
    if not page.exists() or page.read_text("utf-8") != text:
        page.write_text(text, "utf-8")
