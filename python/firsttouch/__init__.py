"""The memory behind arrays: faster NumPy programs on memory that is faulted in once.

The quickest way is the command line: ``firsttouch run script.py``. In a program: :func:`install` for the whole
process, :func:`use` for a block of code. Libraries do not call :func:`install`; :func:`is_installed` tells them.

PYTEST_DONT_REWRITE: pytest rewrites the packages of a plugin, and warns where they are loaded already.
"""

import sys as _sys

if "t" in getattr(_sys, "abiflags", ""):
    raise ImportError(
        "firsttouch does not support free-threaded Python yet: use the ordinary build (python3.x without the t)"
    )

from _firsttouch_start import command_line as _command_line

TYPE_CHECKING = False  # typing would be imported for it
if TYPE_CHECKING:
    from typing import Any

if TYPE_CHECKING or not _command_line.is_this_process():
    from firsttouch._public import *  # noqa: F403
    from firsttouch._public import __all__ as __all__
    from firsttouch._public import __version__ as __version__
else:  # `firsttouch run` only starts a program: it may end without NumPy, whose import takes longer than all the rest

    def __getattr__(name: str) -> object:
        """Loads the public names where a command asks for one; no other thread and no fork is there to meet it."""
        if name.startswith("_") and name not in ("__all__", "__version__"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from firsttouch import _public

        globals().update({each: getattr(_public, each) for each in ("__all__", *_public.__all__)})
        try:
            return globals()[name]
        except KeyError:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None


def load_ipython_extension(shell: "Any") -> None:
    """``%load_ext firsttouch``: the magics ``%firsttouch`` and ``%%firsttouch``."""
    from firsttouch import ipython

    ipython.load(shell)


def unload_ipython_extension(shell: "Any") -> None:
    """``%unload_ext firsttouch``; what was installed stays."""
    from firsttouch import ipython

    ipython.unload(shell)
