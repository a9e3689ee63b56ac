"""The names of ``firsttouch`` itself: those that a user of the README needs. The rest is in the public modules.

Everything is imported here, at once. An import inside a public function would take a lock that a forked child waits for
if the thread that holds it does not exist there, could meet a half-loaded module in a signal handler or a finalizer,
and would read a file that a program may no longer read once it has dropped its privileges. The exceptions are heavy
third-party packages (matplotlib, Numba, IPython) that the caller requested by name.
"""

from types import ModuleType
from typing import TYPE_CHECKING

from firsttouch import _registration as _registration
from firsttouch import allocators, arrays, buffers, custom, inspection, placement, process, profiling, sharing
from firsttouch._firsttouch import (
    Allocator,
    FixedBuffer,
    ScratchBuffer,
    UnsupportedError,
    current_node,
    highest_node,
    scratch,
)
from firsttouch._firsttouch import (
    __version__ as __version__,
)
from firsttouch.allocators import (
    aligned,
    calloc,
    filled,
    from_functions,
    guarded,
    jemalloc,
    limited,
    malloc,
    mimalloc,
    numa,
    numpy_default,
    pages,
    pool,
    tracked,
)
from firsttouch.arrays import (
    arange,
    asarray,
    empty_like,
    eye,
    fromiter,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    zeros_like,
)
from firsttouch.arrays import (
    array as array,
)
from firsttouch.arrays import (
    copy as copy,
)
from firsttouch.buffers import default_buffer, using_buffer
from firsttouch.context import use
from firsttouch.inspection import inspect as inspect
from firsttouch.placement import collapse, migrate, receipt, receipts, run_on, topology, touch
from firsttouch.process import get_allocator, install, is_installed, last_failure, stats, trim, uninstall
from firsttouch.profiling import measure
from firsttouch.sharing import SharedArrayError, share, shared

if TYPE_CHECKING:
    from firsttouch.arrays import empty, zeros  # their types
else:
    from firsttouch._firsttouch import empty, zeros  # the short way, and those as the long one

MODULES: tuple[ModuleType, ...] = (
    allocators,
    arrays,
    buffers,
    custom,
    inspection,
    placement,
    process,
    profiling,
    sharing,
)
"""The public modules, each with its names in ``__all__``."""

UNSTARRED = ("__version__", "array", "copy", "inspect")
"""Public as well, but not in ``__all__``: a star import must not replace a module of the standard library."""

__all__ = [  # noqa: RUF022 (grouped by purpose)
    # Allocators
    "Allocator",
    "aligned",
    "calloc",
    "filled",
    "from_functions",
    "guarded",
    "jemalloc",
    "limited",
    "malloc",
    "mimalloc",
    "numa",
    "numpy_default",
    "pages",
    "pool",
    "tracked",
    # Arrays
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "fromiter",
    "full",
    "full_like",
    "linspace",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
    # The process, and blocks of code
    "get_allocator",
    "install",
    "is_installed",
    "last_failure",
    "stats",
    "trim",
    "uninstall",
    "use",
    # Scratch memory
    "FixedBuffer",
    "ScratchBuffer",
    "default_buffer",
    "scratch",
    "using_buffer",
    # Placement
    "collapse",
    "current_node",
    "highest_node",
    "migrate",
    "receipt",
    "receipts",
    "run_on",
    "topology",
    "touch",
    # Sharing
    "share",
    "shared",
    # Profiling
    "measure",
    # Errors
    "SharedArrayError",
    "UnsupportedError",
]


def missing(name: str) -> AttributeError:
    """Return the error for a name that ``firsttouch`` does not have, with the public module that does."""
    for module in MODULES:
        if name in module.__all__:
            return AttributeError(f"module 'firsttouch' has no attribute {name!r}: it is {module.__name__}.{name}")
    return AttributeError(f"module 'firsttouch' has no attribute {name!r}")
