"""When and where a process writes its report, and what it counts for that. The words are the native module's."""

import atexit
import os
import sys
import time

from _firsttouch_start import library, native, pooling, rank, speak
from _firsttouch_start.listen import listener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

resource: "Any"
try:
    resource = library.borrow("resource")
except ImportError:  # not a Unix
    resource = None

_COUNTS = ("wall", "waited", "user", "kernel", "minor_faults", "major_faults", "children")
_start: "dict[str, float]" = dict.fromkeys(_COUNTS, 0.0)
_started_as = 0
_reported_by = 0
_SERVERS = ("resource_tracker", "forkserver")


def watch(text: str) -> None:
    """Report at the end of the process. Registered first, so that atexit calls it last."""
    global _started_as
    _started_as = os.getpid()
    _begin()
    atexit.register(finish)
    if "%p" in text:  # each process writes a file of its own, forked ones included
        listener.add("multiprocessing.util", _follow_workers)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=_begin)


def _begin() -> None:
    """Count from here on: an exec keeps the counters of the process, and a fork those of the pool."""
    _start.update(_now())
    if pooling.installed:
        pooling.module.begin_report(pooling.allocator)


def _follow_workers(name: str) -> None:
    """Report in workers, too: they leave by os._exit, which only multiprocessing's finalizers precede."""
    listener.remove(name)
    util: Any = sys.modules[name]
    here: ModuleType = sys.modules[__name__]
    # Called in each worker, after the inherited finalizers were cleared.
    util.register_after_fork(here, lambda _: util.Finalize(None, finish, exitpriority=-(2**30)))


def finish() -> None:
    """Write the report of this process, if it is one that reports, and never raise."""
    global _reported_by
    process = os.getpid()
    text = os.environ.get("FIRSTTOUCH_RUN", "")
    if _reported_by == process or (str(process) not in text and "%p" not in text):
        return
    _reported_by = process
    try:
        _report(process)
    except BaseException as error:
        speak.failure("the report", error)


def _report(process: int) -> None:
    from _firsttouch_start import settings

    options = settings.load()
    main = options.get("pid") == process
    pattern = options.get("json") or ""
    fields = rank.fields(pattern)
    if not _main_interpreter() or _serves_others() or (main and _never_started(options)):
        return
    if "trace" in options:
        from _firsttouch_start import tracing

        tracing.end(options, main)
        return
    own_file = pattern and ("p" in fields or (main and (rank.is_first() or "r" in fields)))
    on_screen = main and rank.is_first() and not options.get("quiet")
    if not own_file and not on_screen:
        return
    text, json = native.load().report(_facts(main), pooling.installed, pooling.allocator)
    if on_screen:
        speak.write(sys.__stderr__, text)
    if own_file:
        _save(json, rank.fill(pattern))


def _facts(main: bool) -> "dict[str, Any]":
    numpy: Any = sys.modules.get("numpy")
    reason = pooling.reason
    if numpy is not None and not pooling.installed:
        reason = reason or "the start-up hook did not see the import of NumPy"
    return process() | {
        "main_process": main,
        "rank": rank.current(),
        "command": list(sys.orig_argv),
        "python": sys.version.split()[0],
        "numpy": getattr(numpy, "__version__", None),
        "not_pooled_because": reason,
        "allocator": None if pooling.allocator is None else repr(pooling.allocator),
        **{f"resident_{when}": number for when, number in resident().items()},
    }


def _save(content: str, path: str) -> None:
    """Write the report as JSON. If the file cannot be written, print one line instead."""
    if path == "-":
        speak.write(sys.__stdout__, content)
        return
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)
    except (OSError, ValueError) as error:
        speak.line(f"cannot write the report to {path}: {speak.reason(error)}")


def _never_started(options: "dict[str, Any]") -> bool:
    """Return whether Python rejected the program before its first line.

    Python runs modules, folders and archives through runpy, which sets `__main__.__spec__` last. A syntax error in the
    program itself has no traceback.
    """
    if options.get("runpy"):
        return getattr(sys.modules.get("__main__"), "__spec__", None) is None
    error = getattr(sys, "last_value", None)
    return isinstance(error, SyntaxError) and getattr(sys, "last_traceback", None) is None


def _serves_others() -> bool:
    """Return whether this is a helper process of multiprocessing or loky, and not a fork of one."""
    command = sys.orig_argv
    return (
        os.getpid() == _started_as
        and "-c" in command
        and any(f"{name} import main" in command[-1] for name in _SERVERS)
    )


def _main_interpreter() -> bool:
    """Return whether this is the main interpreter: subinterpreters run the .pth file, too, but must not report."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            current: Any = __import__(name).get_current()
        except ImportError:
            continue
        return int(current[0] if isinstance(current, tuple) else current) == 0
    return True


def process() -> "dict[str, float]":
    """Return the seconds and faults since the start.

    During `waited`, a part of `wall`, others had the processor. `children` is the processor time of child processes
    that have ended and were waited for.
    """
    return {name: value - _start[name] for name, value in _now().items()}


def _now() -> "dict[str, float]":
    if resource is None:
        used = (time.process_time(), 0.0, 0, 0, 0.0)
    else:
        usage, others = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        children = others.ru_utime + others.ru_stime
        used = (usage.ru_utime, usage.ru_stime, usage.ru_minflt, usage.ru_majflt, children)
    return dict(zip(_COUNTS, (time.perf_counter(), _waited(), *used), strict=True))


def _waited() -> float:
    """Return the seconds in which the main thread could have run, and waited for a processor; 0 where unknown."""
    try:
        with open("/proc/self/schedstat", "rb") as counts:
            return int(counts.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):  # no Linux, or a kernel without these counts
        return 0.0


def resident() -> "dict[str, int | None]":
    """Return the resident bytes now and at the peak of this program; Linux counts both per address space."""
    found: dict[str, int | None] = {"now": None, "peak": None}
    try:
        with open("/proc/self/status", encoding="utf-8", errors="replace") as status:
            for line in status:
                key, _, value = line.partition(":")
                if key in ("VmRSS", "VmHWM"):
                    found["now" if key == "VmRSS" else "peak"] = int(value.split()[0]) * 1024
    except (OSError, ValueError):
        pass
    return found
