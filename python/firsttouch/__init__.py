"""Faster NumPy programs, on memory that is faulted in once.

The quickest way is the command line: ``firsttouch run script.py``. In a program, use :func:`install` for the whole
process or :func:`use` for a block of code. Libraries do not call :func:`install`; :func:`is_installed` tells them
whether somebody did.

The names here are those that most programs need. Classes of results, and what few programs need, are in the public
modules ``allocators``, ``arrays``, ``buffers``, ``custom``, ``inspection``, ``placement``, ``process``, ``profiling``
and ``sharing``. A star import leaves out ``array`` and ``inspect``, which name modules of the standard library.

``None`` stands for *not given*: the argument's documented default. For `allocator`, that is the current allocator where
arrays are made, and the process's elsewhere: its own pool or, for :func:`stats` and :func:`trim`, the installed
allocator if there is one. :func:`get_allocator` returns the current one. The few arguments that ``None`` switches off
say ``or None`` in their type.

PYTEST_DONT_REWRITE: pytest rewrites the packages of a plugin, and warns where they are loaded already.
"""

from importlib import import_module as _import_module

import _firsttouch_start as _start

TYPE_CHECKING = False  # typing would be imported for it
if TYPE_CHECKING:
    from types import ModuleType

__all__ = [  # noqa: RUF022 (grouped by purpose)
    # Allocators; those that are declared in Rust are added below
    "Allocator",
    "numpy_default",
    # Arrays; `array` is public, too
    "empty",
    "empty_like",
    "full",
    "full_like",
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
    "scratch",
    # What is behind arrays; `inspect` is public, too
    "migrate",
    "receipt",
    "touch",
    "shared",
    # Profiling
    "measure",
]

_UNSTARRED = ("array", "inspect")
"""Public as well, but not in ``__all__``: a star import must not replace a module of the standard library."""

_MODULES = (
    *("allocators", "arrays", "buffers", "custom", "inspection", "placement", "process", "profiling", "sharing"),
)
"""The public modules, each with its names in ``__all__``."""


def _public_modules() -> "list[ModuleType]":
    return [_import_module(f"firsttouch.{name}") for name in _MODULES]


# Everything is imported here, at once. An import inside a public function would take a lock that a forked child waits
# for if the thread that holds it does not exist there, could meet a half-loaded module in a signal handler or a
# finalizer, and would read a file that a program may no longer read once it has dropped its privileges. The exceptions
# are heavy third-party packages (matplotlib, Numba) that the caller requested by name, and the process of
# `firsttouch run`, which only starts a program and may end without NumPy.
if TYPE_CHECKING or not _start.is_command_line():
    # NumPy and PyO3 belong to the first interpreter that loads them: a subinterpreter that tried would take them from
    # the main one, even where it fails.
    if not _start.is_main_interpreter():
        raise ImportError(
            "firsttouch does not support subinterpreters, as NumPy does not: import it in the main interpreter, "
            "and use threads or processes"
        )
    import numpy as _numpy  # noqa: F401 (first: the native module looks up once where NumPy lies)

    _import_module("firsttouch._firsttouch")  # where it is missing, this says so; it brings the next with it
    from firsttouch import _firsttouch as _firsttouch
    from firsttouch import custom as custom
    from firsttouch._allocators import *  # noqa: F403 (those of the declaration)
    from firsttouch._firsttouch import __version__ as __version__
    from firsttouch.allocators import Allocator, numpy_default
    from firsttouch.arrays import array as array
    from firsttouch.arrays import empty, empty_like, full, full_like, ones, ones_like, zeros, zeros_like
    from firsttouch.buffers import FixedBuffer, ScratchBuffer, scratch
    from firsttouch.inspection import inspect as inspect
    from firsttouch.placement import migrate, receipt, touch
    from firsttouch.process import get_allocator, install, is_installed, last_failure, stats, trim, uninstall, use
    from firsttouch.profiling import measure
    from firsttouch.sharing import shared

    __all__ += _firsttouch._allocators.__all__

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Load the names in the process of `firsttouch run`, where no other thread and no fork meets an import."""
        if "use" not in globals() and (not name.startswith("_") or name == "__version__"):
            __all__.extend(_import_module("firsttouch._allocators").__all__)
            for module in _public_modules():
                public = {*__all__, *_UNSTARRED}.intersection(module.__all__)
                globals().update({each: getattr(module, each) for each in public})
            globals()["__version__"] = _import_module("firsttouch._firsttouch").__version__
            if name in globals():
                return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
