"""Pools the arrays of a Python process that `firsttouch run` started, as soon as the process imports NumPy.

It imports neither NumPy nor the package firsttouch for that: a program that does not need them does not pay for them.
"""

import os
import sys

from _firsttouch_start import settings, speak

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

#: Whether the pool is installed in this process and, if not, why not.
installed = False
reason: str | None = None
#: The allocator created from the options; None stands for the process's own pool.
allocator: "Any" = None
#: Whether accesses beyond arrays are looked for.
guarded = False
#: The native module, once it is loaded for NumPy's arrays.
module: "Any" = None
_done = False

_NATIVE = "firsttouch._firsttouch"


def load() -> "Any":
    """Return the native module next to this package, whatever else is named firsttouch on the program's path.

    It loads without the package around it, which finds it if the program imports that later. Raises ImportError if it
    cannot be loaded.
    """
    import importlib
    from importlib.machinery import PathFinder

    if _NATIVE in sys.modules:
        return importlib.import_module(_NATIVE)  # waits for a thread that is loading it
    folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "firsttouch")
    spec = PathFinder.find_spec(_NATIVE, [folder])
    if spec is None:
        raise ImportError(f"{folder} has no native module for this Python", name=_NATIVE)
    # import_module calls this after importing the package and finding the module; it acquires the module's lock.
    return importlib._bootstrap._load(spec)  # type: ignore[attr-defined]


def watch() -> None:
    """Wait for the import of NumPy, or install at once if it is imported already."""
    numpy = sys.modules.get("numpy")
    if numpy is None or getattr(getattr(numpy, "__spec__", None), "_initializing", False):
        sys.meta_path.insert(0, _finder)
    else:
        _imported()


class _Finder:
    """Calls `_imported` within the first import of NumPy, and leaves nothing on its modules.

    NumPy looks for this module of its own when all of it that is large is there.
    """

    def find_spec(
        self, name: str, path: "Sequence[str] | None" = None, target: "ModuleType | None" = None
    ) -> "ModuleSpec | None":
        if name != "numpy.lib._version" or "numpy._core.multiarray" not in sys.modules:
            return None
        import importlib

        _imported()
        # The import goes on with the finder behind this one in the list, which would be the second one behind it now.
        spec: ModuleSpec | None = importlib._bootstrap._find_spec(name, path, target)  # type: ignore[attr-defined]
        return spec


_finder = _Finder()


def _imported() -> None:
    """Install, now that NumPy's core is there. No failure here may reach the program."""
    global _done
    if _done:
        return
    _done = True
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    try:
        _install()
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of the native module is not an Exception
        unsupported = type(error).__name__ == "UnsupportedError"
        _refused(str(error) if unsupported else f"{type(error).__name__}: {error}")


def _install() -> None:
    global allocator, installed, module
    module = load()
    module.register()
    add_reasons()
    options = settings.load()
    if "allocator" in options:
        allocator = module.parse(options["allocator"])
        _watch_guards()
    if "limit" in options:
        upstream = module.default_pool() if allocator is None else allocator
        allocator = module._allocators.limited(upstream, options["limit"])
        _share_budget(options["accounts"])
    if "trace" in options:  # of NumPy's own memory
        from _firsttouch_start import ending

        ending.begin_trace(options)
    else:
        module.install(allocator, trim_c_library=True)
        installed = True
    if "lines" in options:
        _publish_lines()


def _share_budget(accounts: "list[int] | None") -> None:
    """Count with the other processes of the run, where the one that started them can be reached."""
    if accounts is not None:
        try:
            module.share_budget(allocator, *accounts)
        except OSError:
            return  # it has a budget of its own


def leave() -> None:
    """Note that this process ends by itself: what it holds is not what a kill is to be explained with."""
    if allocator is not None:
        module.leave_budget(allocator)


def _publish_lines() -> None:
    """Publish the live blocks of this process, and of children, for `firsttouch why`."""
    module.live_begin()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=module.live_begin)


def _watch_guards() -> None:
    """Let a fault on a guard say which array it was, and on which line of the program."""
    global guarded
    try:
        module.overruns(allocator)
    except TypeError:  # nothing is guarded
        return
    guarded = True
    if sys.__stderr__ is None:
        return
    import faulthandler

    if not faulthandler.is_enabled():
        faulthandler.enable(sys.__stderr__, all_threads=False)
    module.watch_faults(sys.__stderr__.fileno())


def _refused(why: str) -> None:
    """Report, once per program and not once per worker, that it runs without the pool."""
    global reason
    reason = " ".join(why.split())
    if str(settings.command_process()) in os.environ.get("FIRSTTOUCH_RUN", ""):
        speak.line(f"not pooled: {reason}")


def add_reasons() -> None:
    """Let NumPy's MemoryError explain refusals by budgets and by custom allocators, in the whole process.

    NumPy replaces whatever error an allocator raises by its own, and makes that from the class that is changed here.
    """
    try:
        from numpy._core import _exceptions
    except ImportError:
        return  # a private name of NumPy's
    kind: Any = _exceptions._ArrayMemoryError
    if hasattr(kind, "_firsttouch_reasons"):
        return
    native, begin = load(), kind.__init__

    def explain(self: "Any", *arguments: "Any") -> None:
        begin(self, *arguments)
        found = native.last_failure()
        if type(self) is not kind or found is None or found[0] != asked(self):
            return
        if found[1] == "limited":
            self.add_note(found[2])
        elif (raised := native.take_error()) is not None:
            self.__cause__ = raised

    kind.__init__ = explain
    kind._firsttouch_reasons = True


def asked(error: "Any") -> "int | None":
    """Return the bytes that NumPy requested, if an error of its own tells."""
    if not hasattr(error, "shape"):
        return None
    nbytes = error.dtype.itemsize
    for length in error.shape:
        nbytes *= max(length, 1)
    return int(nbytes)
