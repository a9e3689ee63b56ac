"""Installs the pool as soon as NumPy is imported, without importing NumPy for it."""

import os
import sys

from _firsttouch_start import native, speak
from _firsttouch_start.listen import listener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Whether the pool is installed in this process and, if not, why not.
installed = False
reason: str | None = None
#: The allocator created from the options; None stands for the process's own pool.
allocator: "Any" = None
#: The native module, once it is loaded for NumPy's arrays.
module: "Any" = None
_done = False


def watch() -> None:
    """Wait for the import of NumPy, or install at once if it is imported already."""
    listener.add("numpy", _heard)
    module = sys.modules.get("numpy")
    if module is not None and not getattr(getattr(module, "__spec__", None), "_initializing", False):
        _heard("numpy")


def _heard(_: str) -> None:
    """Install once the import of NumPy is complete. No failure here may reach the program."""
    global _done
    if _done:
        return
    _done = True
    listener.remove("numpy")
    try:
        _install()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the native module is not an Exception
        unsupported = type(error).__name__ == "UnsupportedError"
        _refused(str(error) if unsupported else f"{type(error).__name__}: {error}")


def _install() -> None:
    global allocator, installed, module
    from _firsttouch_start import settings

    module = native.load()
    if not module.BACKEND:
        _refused("firsttouch has no backend for this platform")
        return
    module.register(budget_made=add_reasons)
    options = settings.load()
    shared = module.shares_preloaded_pool()  # its settings came by another way
    chosen = {name: options[name] for name in ("max_idle", "decay") if name in options and not shared}
    if "allocator" in options:
        from firsttouch._internal import resolve

        allocator = resolve.parse(options["allocator"])
    elif chosen:
        allocator = module._allocators.pool(**chosen)
    if "limit" in options:
        upstream = module.default_pool() if allocator is None else allocator
        allocator = module._allocators.limited(upstream, options["limit"])
    if "trace" not in options or allocator is not None:  # a trace is of NumPy's own memory by default
        module.install(allocator)
        installed = True
    if "trace" in options:
        from _firsttouch_start import tracing

        tracing.begin(options)


def _refused(why: str) -> None:
    """Report, once per program and not once per worker, that it runs without the pool."""
    global reason
    reason = " ".join(why.split())
    if str(os.getpid()) in os.environ.get("FIRSTTOUCH_RUN", ""):
        speak.line(f"not pooled: {reason}")


def add_reasons() -> None:
    """Let NumPy's MemoryError explain refusals, from now on and in the whole process.

    NumPy replaces whatever error an allocator raises by its own, and makes that from the class that is changed here.
    """
    try:
        from numpy._core import _exceptions
    except ImportError:
        return  # a private name of NumPy's
    kind: Any = _exceptions._ArrayMemoryError
    if hasattr(kind, "_firsttouch_reasons"):
        return
    native_module, begin = native.load(), kind.__init__

    def explain(self: "Any", *arguments: "Any") -> None:
        begin(self, *arguments)
        found = native_module.last_failure()
        if type(self) is not kind or found is None or found[0] != _asked(self):
            return
        if found[1] == "limited":
            self.add_note(found[2])
        elif (raised := native_module.take_error()) is not None:
            self.__cause__ = raised

    kind.__init__ = explain
    kind._firsttouch_reasons = True


def _asked(error: "Any") -> int:
    """Return the bytes that NumPy requested."""
    nbytes = error.dtype.itemsize
    for length in error.shape:
        nbytes *= max(length, 1)
    return int(nbytes)
