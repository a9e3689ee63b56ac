"""What a process of `firsttouch run` writes at its end: a report, or a trace. The native module counts and words."""

import atexit
import os
import sys
import time

import _firsttouch_start as hook
from _firsttouch_start import command_process, speak

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The counts when this process began, as `start` in the options: a fork and a new process count from zero.
_start = [time.monotonic(), *[0.0] * 5]
#: The same where a fork inherited the pool's counts.
_forked: "Any" = None
_started_as = 0
_reported_by = 0
#: The file of the trace, and what describes the program.
_traced = ""
_facts: "dict[str, str]" = {}
#: Seconds that `firsttouch why` has at the end to look at the process a last time.
_LAST_LOOK = 10.0
_SERVERS = ("resource_tracker", "forkserver")


def watch() -> None:
    """Report at the end of the process. Registered first, so that atexit calls it last."""
    global _started_as
    _started_as = os.getpid()
    atexit.register(finish)
    # Forked processes write files of their own, or have accounts of the budget.
    text = os.environ.get(hook.VARIABLE, "")
    if ("%p" in text or "accounts" in text) and hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_begin_child)


def _begin_child() -> None:
    """Count from here on. Workers leave by os._exit, which only multiprocessing's finalizers precede."""
    global _forked
    _start[0] = time.monotonic()
    if hook.installed:
        _forked = hook.module.ReportStart.now(hook.allocator)
    util: Any = sys.modules.get("multiprocessing.util")
    if hasattr(util, "Finalize"):
        # Called once the worker has cleared the finalizers that it inherited.
        util.register_after_fork(sys.modules[__name__], lambda _: util.Finalize(None, finish, exitpriority=-(2**30)))


def finish() -> None:
    """Write the report of this process, if it is one that reports, and never raise."""
    global _reported_by
    hook.leave()
    process = os.getpid()
    text = os.environ.get(hook.VARIABLE, "")
    if _reported_by == process or (str(command_process()) not in text and "%p" not in text):
        return
    _reported_by = process
    try:
        _report(hook.options())
    except BaseException as error:
        speak.failure("the report", error)


def _report(options: "dict[str, Any]") -> None:
    main = options.get("pid") == command_process()
    if _serves_others():
        return
    if main and options.get("watched") == os.getppid():  # it may have been killed
        hook.load().live_end(_LAST_LOOK)
    if "trace" in options:
        _end_trace(options, main)
        return
    if main and hook.installed:
        _explain_bare_error()
    if hook.guarded:
        for found in hook.module.overruns(hook.allocator):
            speak.line(found)
    pattern: str = options.get("json") or ""
    own_file = bool(pattern) and (main or "%p" in pattern)
    on_screen = main and not options.get("quiet")
    if not own_file and not on_screen:
        return
    numpy: Any = sys.modules.get("numpy")
    reason = hook.reason
    if numpy is not None and not hook.installed:
        reason = reason or "the start-up hook did not see the import of NumPy"
    facts = {
        "main_process": main,
        "rank": options.get("rank"),
        "command": sys.orig_argv,
        "python": sys.version.split()[0],
        "numpy": getattr(numpy, "__version__", None),
        "not_pooled_because": reason,
        "elsewhere": [name for name in ("torch", "jax", "pyarrow") if name in sys.modules and _has_memory(name)],
    }
    native = hook.load()
    start = native.ReportStart(_counted(options, main)) if _forked is None else _forked
    text, json = native.report(facts, start, hook.installed, hook.allocator)
    if on_screen:
        speak.write(sys.__stderr__, text)
    if own_file:
        _save(json, pattern.replace("%p", str(os.getpid())))


def _has_memory(package: str) -> bool:
    """Return whether the program used a package's own memory: pandas imports Arrow, whether it is needed or not."""
    try:
        return package != "pyarrow" or sys.modules[package].default_memory_pool().max_memory() >= 1 << 20
    except Exception:  # a module of that name may be anything
        return False


def _explain_bare_error() -> None:
    """Say why the program ended with a MemoryError of CPython's, of bytes or a list: NumPy's has a note."""
    error = getattr(sys, "last_value", None)
    if type(error) is MemoryError and not error.args:
        failure = hook.module.last_failure()
        if failure is not None:
            speak.write(sys.__stderr__, f"firsttouch: {failure[2]}\n")


def _counted(options: "dict[str, Any]", main: bool) -> "list[float]":
    """Return what was counted when the program began: an exec keeps the counters of the process."""
    return options.get("start", _start) if main and os.name != "nt" else _start


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


def _serves_others() -> bool:
    """Return whether this is a helper process of multiprocessing or loky, and not a fork of one."""
    command = sys.orig_argv
    return (
        os.getpid() == _started_as
        and "-c" in command
        and any(f"{name} import main" in command[-1] for name in _SERVERS)
    )


def begin_trace(options: "dict[str, Any]") -> None:
    """Start tracing, in the process that was started. Its file is empty until the end."""
    global _traced, _facts
    file: str = options["trace"]
    if not file or options.get("pid") != command_process():
        return
    try:
        with open(file, "wb"):
            pass
        arrays_only = hook.module.trace_begin()
    except OSError as error:
        speak.line(f"no trace: {file} cannot be written: {speak.reason(error)}")
    except Exception as error:
        speak.failure("the trace", error)
    else:
        _traced = file
        _facts = {
            "numpy": sys.modules["numpy"].__version__,
            "python": sys.version.split()[0],
            "command": repr(sys.orig_argv),
        }
        if arrays_only:
            _facts["arrays_only"] = arrays_only


def _end_trace(options: "dict[str, Any]", main: bool) -> None:
    """Write the trace, and a line about it."""
    if not _traced:
        why = hook.reason if "numpy" in sys.modules else "NumPy was never imported"
        if why and main and options["trace"] and not options.get("advise"):  # which says itself what it lacks
            speak.line(f"no trace: {why}")
        return
    try:
        written = hook.module.trace_end(_traced, list(_facts.items()), _counted(options, main))
    except OSError as error:
        speak.line(f"no trace: {_traced} cannot be written: {speak.reason(error)}")
        return
    if written is not None and not options.get("quiet"):  # the parent of a forked child has it
        speak.line(f"{_traced}: {written}")
