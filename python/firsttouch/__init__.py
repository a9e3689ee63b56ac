"""The memory behind arrays: faster NumPy programs on memory that is faulted in once.

The quickest way is the command line: ``firsttouch run script.py``. In a program: :func:`install` for the whole
process, :func:`use` for a block of code. Libraries do not call :func:`install`; :func:`is_installed` tells them.
"""

import sys as _sys

if "t" in getattr(_sys, "abiflags", ""):
    raise ImportError(
        "firsttouch does not support free-threaded Python yet: use the ordinary build (python3.x without the t)"
    )

from firsttouch._firsttouch import Allocator, UnsupportedError, __version__
from firsttouch.allocators import aligned, calloc, malloc, numpy_default, pages, pool
from firsttouch.process import get_allocator, install, is_installed, last_failure, trim, uninstall
from firsttouch.reports import Failure, Stats, stats
from firsttouch.scopes import use

__all__ = [
    "Allocator",
    "Failure",
    "Stats",
    "UnsupportedError",
    "__version__",
    "aligned",
    "calloc",
    "get_allocator",
    "install",
    "is_installed",
    "last_failure",
    "malloc",
    "numpy_default",
    "pages",
    "pool",
    "stats",
    "trim",
    "uninstall",
    "use",
]
