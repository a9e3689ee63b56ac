"""The public names, all there once this is imported.

Nothing is imported later: an import in the middle of a public function would be a lock that a forked child waits for
when its thread does not exist there, a half-loaded module for a signal handler or a finalizer that comes back here,
and a file that a program cannot read any more once it has given up its rights. The exceptions are the heavy
neighbours (matplotlib, Numba, IPython), which whoever names them has asked for.
"""

from firsttouch import _registration  # noqa: F401 (it registers when it is imported)
from firsttouch._firsttouch import (
    Allocator,
    Buffer,
    FixedBuffer,
    Mark,
    Scope,
    ScratchBuffer,
    UnsupportedError,
    __version__,
    current_node,
    empty,
    highest_node,
    scratch,
    scratch_from_table,
    zeros,
)
from firsttouch._internal.reports import Failure, Stats, stats
from firsttouch.adaptors import filled, guarded, limited, pool, tracked
from firsttouch.allocators import (
    aligned,
    calloc,
    from_functions,
    jemalloc,
    malloc,
    mimalloc,
    numa,
    numpy_default,
    pages,
)
from firsttouch.arrays import (
    arange,
    array,
    asarray,
    copy,
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
from firsttouch.buffers.default import default_buffer, using_buffer
from firsttouch.buffers.errors import EscapeError, EscapeWarning
from firsttouch.context import use
from firsttouch.custom import AllocatorLike, OwnAllocator
from firsttouch.inspection import (
    Inspection,
    NotBackedWarning,
    PageSource,
    PageState,
    check_backed,
    inspect,
    is_backed,
    pagemap,
    plot_pagemap,
)
from firsttouch.placement.arrays import collapse, migrate, receipt, receipts, touch
from firsttouch.placement.nodes import run_on, topology
from firsttouch.placement.policies import Policy
from firsttouch.process import get_allocator, install, is_installed, last_failure, trim, uninstall
from firsttouch.profiling import Measured, measure
from firsttouch.sharing import SharedArrayError, share, shared

__all__ = [
    "Allocator",
    "AllocatorLike",
    "Buffer",
    "EscapeError",
    "EscapeWarning",
    "Failure",
    "FixedBuffer",
    "Inspection",
    "Mark",
    "Measured",
    "NotBackedWarning",
    "OwnAllocator",
    "PageSource",
    "PageState",
    "Policy",
    "Scope",
    "ScratchBuffer",
    "SharedArrayError",
    "Stats",
    "UnsupportedError",
    "__version__",
    "aligned",
    "arange",
    "array",
    "asarray",
    "calloc",
    "check_backed",
    "collapse",
    "copy",
    "current_node",
    "default_buffer",
    "empty",
    "empty_like",
    "eye",
    "filled",
    "from_functions",
    "fromiter",
    "full",
    "full_like",
    "get_allocator",
    "guarded",
    "highest_node",
    "inspect",
    "install",
    "is_backed",
    "is_installed",
    "jemalloc",
    "last_failure",
    "limited",
    "linspace",
    "malloc",
    "measure",
    "migrate",
    "mimalloc",
    "numa",
    "numpy_default",
    "ones",
    "ones_like",
    "pagemap",
    "pages",
    "plot_pagemap",
    "pool",
    "receipt",
    "receipts",
    "run_on",
    "scratch",
    "scratch_from_table",
    "share",
    "shared",
    "stats",
    "topology",
    "touch",
    "tracked",
    "trim",
    "uninstall",
    "use",
    "using_buffer",
    "zeros",
    "zeros_like",
]
