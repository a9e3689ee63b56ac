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

from firsttouch import late as _late
from firsttouch import scratch as _scratch  # noqa: F401 (before the name is that of the context manager)
from firsttouch import showing as _showing
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
from firsttouch.process import get_allocator, install, is_installed, last_failure, trim, uninstall
from firsttouch.reports import Failure, Stats, stats

TYPE_CHECKING = False  # typing would cost milliseconds
if TYPE_CHECKING:
    from typing import Any

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
    from firsttouch.creation import (
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
    from firsttouch.gauge import Measured, measure
    from firsttouch.own import AllocatorLike, OwnAllocator
    from firsttouch.placement.arrays import collapse, migrate, receipt, receipts, touch
    from firsttouch.placement.nodes import run_on, topology
    from firsttouch.placement.policies import Policy
    from firsttouch.scopes import use
    from firsttouch.scratch.default import default_buffer, using_buffer
    from firsttouch.scratch.errors import EscapeError, EscapeWarning
    from firsttouch.sharing import SharedArrayError, share, shared
    from firsttouch.sight import (
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

_late.attach()
_showing.attach()


def load_ipython_extension(shell: "Any") -> None:
    """``%load_ext firsttouch``: the magics ``%firsttouch`` and ``%%firsttouch``."""
    from firsttouch import notebook

    notebook.load(shell)


def unload_ipython_extension(shell: "Any") -> None:
    """``%unload_ext firsttouch``; what was installed stays."""
    from firsttouch import notebook

    notebook.unload(shell)


if not TYPE_CHECKING:  # else any name would do

    def __getattr__(name: str) -> object:
        """What is loaded when it is first asked for. All constructors then stay, also at the interpreter's end."""
        if name in _late.MODULES:
            globals()[name] = found = _late.loaded(name)
            return found
        if name not in _late.NAMES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        late = {each: _late.constructor(each) for each in _late.NAMES if each not in globals()}
        globals().update(late)
        return late[name]


def __dir__() -> list[str]:
    return sorted({*globals(), *_late.NAMES, *_late.MODULES})
