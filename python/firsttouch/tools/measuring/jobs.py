"""Processes on Windows: a job ends them together with the process that started them, and counts what they used."""

from __future__ import annotations

import contextlib
import ctypes
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from ctypes import wintypes
from typing import Any, Self

assert sys.platform == "win32"

_kernel = ctypes.WinDLL("kernel32", use_last_error=True)
_kernel.CreateJobObjectW.restype = wintypes.HANDLE
_kernel.GetCurrentProcess.restype = wintypes.HANDLE
_resume = ctypes.WinDLL("ntdll").NtResumeProcess
_resume.argtypes = [wintypes.HANDLE]

_MODES = {"stdin": "rb", "stdout": "wb", "stderr": "wb"}
_LIMITS, _ACCOUNTING = 9, 1  # classes of information on a job
_KILL_ON_CLOSE = 0x2000
_SUSPENDED = 0x4
#: Units of 100 ns in a second.
_TICKS = 10_000_000


class _Limits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = (
        ("times", ctypes.c_int64 * 2),
        ("flags", wintypes.DWORD),
        ("rest", ctypes.c_size_t * 15),
    )


class _Accounting(ctypes.Structure):
    """JOBOBJECT_BASIC_ACCOUNTING_INFORMATION."""

    _fields_ = (
        ("user", ctypes.c_int64),
        ("system", ctypes.c_int64),
        ("in_this_period", ctypes.c_int64 * 2),
        ("faults", wintypes.DWORD),
        ("processes", wintypes.DWORD * 3),
    )


class _Memory(ctypes.Structure):
    """PROCESS_MEMORY_COUNTERS."""

    _fields_ = (
        ("size", wintypes.DWORD),
        ("faults", wintypes.DWORD),
        ("peak", ctypes.c_size_t),
        ("resident", ctypes.c_size_t),
        ("rest", ctypes.c_size_t * 6),
    )


def _check(done: int) -> None:
    if not done:
        raise ctypes.WinError(ctypes.get_last_error())


def _memory(process: int | None) -> _Memory:
    found = _Memory(size=ctypes.sizeof(_Memory))
    _check(_kernel.K32GetProcessMemoryInfo(wintypes.HANDLE(process), ctypes.byref(found), found.size))
    return found


def resident() -> int:
    """Return the bytes of this process's working set."""
    return int(_memory(_kernel.GetCurrentProcess()).resident)


def faults() -> int:
    """Return the page faults of this process so far, of whatever kind."""
    return int(_memory(_kernel.GetCurrentProcess()).faults)


def _handle(process: Any) -> wintypes.HANDLE:
    return wintypes.HANDLE(int(process._handle))


class Job:
    """A job: when it is closed, at the latest by the end of this process, its processes and their children end."""

    def __init__(self) -> None:
        self._handle = wintypes.HANDLE(_kernel.CreateJobObjectW(None, None))
        _check(self._handle.value or 0)
        limits = _Limits(flags=_KILL_ON_CLOSE)
        size = ctypes.sizeof(limits)
        _check(_kernel.SetInformationJobObject(self._handle, _LIMITS, ctypes.byref(limits), size))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        _kernel.CloseHandle(self._handle)

    def start(self, command: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """Start a process that is in the job from its first instruction on; Ctrl-C does not reach it."""
        flags = subprocess.CREATE_NEW_PROCESS_GROUP | _SUSPENDED
        process: subprocess.Popen[str] = subprocess.Popen(command, creationflags=flags, **options)
        handle = _handle(process)
        try:
            _check(_kernel.AssignProcessToJobObject(self._handle, handle))
        except OSError:
            process.kill()
            raise
        _resume(handle)
        return process

    def used(self, process: subprocess.Popen[str]) -> dict[str, Any]:
        """Return the seconds, faults and bytes of a process that has ended, and of its children.

        The peak is that of the process alone. What wine does not count of a job is the process's.
        """
        handle = _handle(process)
        found, memory = _Accounting(), _memory(handle.value)
        size = ctypes.sizeof(found)
        _check(_kernel.QueryInformationJobObject(self._handle, _ACCOUNTING, ctypes.byref(found), size, None))
        system, user = (ctypes.c_int64() for _ in range(2))
        ignored = ctypes.byref(ctypes.c_int64())
        _check(_kernel.GetProcessTimes(handle, ignored, ignored, ctypes.byref(system), ctypes.byref(user)))
        return {
            "user": max(found.user, user.value) / _TICKS,
            "system": max(found.system, system.value) / _TICKS,
            "minor_faults": max(found.faults, memory.faults),
            "peak_bytes": memory.peak,
        }


def once(command: Sequence[str], environment: Mapping[str, str], files: Mapping[str, str]) -> dict[str, Any]:
    """Run a command with these files as its streams, and return what it used; what it leaves running ends then."""
    with contextlib.ExitStack() as open_:
        streams = {name: open_.enter_context(open(file, _MODES[name])) for name, file in files.items()}
        job, begin = open_.enter_context(Job()), time.monotonic()
        process = job.start(command, env=dict(environment), **streams)
        status = process.wait()
        return {"wall": time.monotonic() - begin, "status": status, **job.used(process)}
