"""``%load_ext firsttouch`` in Jupyter and IPython: the magics ``%firsttouch`` and ``%%firsttouch``."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

NAME = "firsttouch"


def load(shell: InteractiveShell) -> None:
    """Add the magics; nothing is installed until one is used."""
    from firsttouch.ipython.magics import FirsttouchMagics

    shell.register_magics(FirsttouchMagics)


def unload(shell: InteractiveShell) -> None:
    """Remove the magics; an installed allocator stays."""
    for kind in shell.magics_manager.magics.values():
        kind.pop(NAME, None)
