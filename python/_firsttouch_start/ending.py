"""When and where a process writes its report."""

import atexit
import os
import sys

from _firsttouch_start import measures, rank, speak, state
from _firsttouch_start.listen import listener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType
    from typing import Any

_started_as = 0
_reported_by = 0
_SERVERS = ("resource_tracker", "forkserver")


def watch(text: str) -> None:
    """Report at the end of the process. Registered first, so that atexit calls it last."""
    global _started_as
    _started_as = os.getpid()
    measures.restart()
    atexit.register(finish)
    if "%p" in text:  # each process writes a file of its own, forked ones included
        listener.add("multiprocessing.util", _follow_workers)
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=measures.restart)


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
    from _firsttouch_start import report

    found = report.collect(main)
    if state.shared:
        state.native.leave_preloaded_report()
    if on_screen:
        speak.write(sys.__stderr__, report.text(found))
    if own_file:
        report.save(found, rank.fill(pattern))


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
