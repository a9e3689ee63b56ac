"""What runs before the package is imported: the command line's entry point, and the hook of `firsttouch run`.

The hook runs in every interpreter that finds FIRSTTOUCH_RUN set: firsttouch_start.pth calls :func:`begin`; from Python
3.15 on, firsttouch_start.start calls :func:`start` in its place (PEP 829). It pools the process's arrays as soon as the
process imports NumPy. It runs before the program, so it imports next to nothing, neither NumPy nor the package
firsttouch among it, prints nothing and raises nothing.

PYTEST_DONT_REWRITE: pytest would rewrite the packages of a plugin, and warn if they are loaded already.
"""

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

VARIABLE = "FIRSTTOUCH_RUN"

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
_is_script = False
_begun = False

_NATIVE = "firsttouch._firsttouch"


def main() -> int:
    """Run the command line: the entry point of the script ``firsttouch``."""
    global _is_script
    _is_script = True
    from firsttouch.tools.cli.main import main

    return main()


def is_command_line() -> bool:
    """Return whether `firsttouch ...` or `python -m firsttouch ...` started this process."""
    if _is_script:
        return True
    # sys.argv[0] is -m while Python looks for the module; its name precedes the arguments in sys.orig_argv.
    if sys.argv[:1] != ["-m"] or len(sys.orig_argv) <= len(sys.argv):
        return False
    return sys.orig_argv[-len(sys.argv)].removeprefix("-m") == "firsttouch"


def is_main_interpreter() -> bool:
    """Return whether this is no subinterpreter."""
    for name in ("_interpreters", "_xxsubinterpreters"):  # from Python 3.13 on, and before
        try:
            interpreters = __import__(name)
        except ImportError:
            continue
        return bool(interpreters.get_current() == interpreters.get_main())
    return True


def start() -> None:
    """Begin if the variable is set: the entry point in firsttouch_start.start, which is called unconditionally."""
    if os.environ.get(VARIABLE):
        begin()


def begin() -> None:
    """Wait for the end of the process and for the import of NumPy, or install at once if it is imported already."""
    global _begun
    if _begun or not _is_trusted() or not is_main_interpreter():  # the files may be in two site directories
        return
    _begun = True
    try:
        from _firsttouch_start import ending

        ending.watch()
        numpy = sys.modules.get("numpy")
        if numpy is None or getattr(getattr(numpy, "__spec__", None), "_initializing", False):
            sys.meta_path.insert(0, _finder)
        else:
            _imported()
    except Exception as error:
        from _firsttouch_start import speak

        speak.failure("the start", error)


def _is_trusted() -> bool:
    """Return whether this interpreter obeys its environment: not under -I or -E, nor if it is set-uid."""
    if sys.flags.ignore_environment:
        return False
    return not hasattr(os, "getuid") or (os.getuid(), os.getgid()) == (os.geteuid(), os.getegid())


class _Finder:
    """Calls `_imported` within the first import of NumPy, and leaves nothing on its modules.

    NumPy looks for this module of its own once its large ones are loaded.
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
    given = options()
    if "allocator" in given:
        allocator = module.parse(given["allocator"])
        _watch_guards()
    if "limit" in given:
        upstream = module.default_pool() if allocator is None else allocator
        allocator = module._allocators.limited(upstream, given["limit"])
        _share_budget(given["accounts"])
    if "trace" in given:  # of NumPy's own memory
        from _firsttouch_start import ending

        ending.begin_trace(given)
    else:
        module.install(allocator, trim_c_library=True)
        installed = True
    if "lines" in given:
        record_lines()


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


def _share_budget(accounts: "list[int] | None") -> None:
    """Count with the other processes of the run, where the one that started them can be reached."""
    if accounts is not None:
        try:
            module.share_budget(allocator, *accounts)
        except OSError:
            return  # it has a budget of its own


def leave() -> None:
    """Note that this process ends by itself, so that its bytes explain no kill."""
    if allocator is not None:
        module.leave_budget(allocator)


def record_lines(is_late: bool = False) -> None:
    """Publish the live blocks of this process and of children; `is_late` if it may have others."""
    native = load()
    native.live_begin(is_late)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=native.live_begin)


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
    if str(command_process()) in os.environ.get(VARIABLE, ""):
        from _firsttouch_start import speak

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


def options() -> "dict[str, Any]":
    """Parse the options anew each time: a fork or the program itself may have changed the variable.

    Keys: pid, start and, if given, rank, quiet, json, allocator, limit, accounts, lines, watched, trace and advise.
    All of json would cost milliseconds, and might be a module of the program's: this is its own scanner.
    """
    from _json import make_scanner

    text = os.environ.get(VARIABLE, "{}")
    try:
        found = make_scanner(_AsTheyAre)(text, 0)[0]  # type: ignore[arg-type]
    except (StopIteration, ValueError):
        found = None
    if not isinstance(found, dict):
        raise ValueError(f"{VARIABLE} is {text!r}, which `firsttouch run` did not write")
    return found


class _AsTheyAre:
    """Tells json's scanner to build only Python's own types."""

    strict = True
    object_hook = object_pairs_hook = array_hook = None
    parse_float, parse_int, parse_constant = float, int, float


def command_process() -> int:
    """Return the number of the process of `firsttouch run`, if this is the program: that became the program.

    On Windows no process becomes another one, so the program is its child.
    """
    return os.getppid() if os.name == "nt" else os.getpid()
