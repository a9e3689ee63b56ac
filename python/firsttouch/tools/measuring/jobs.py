"""Processes on Windows: a job ends them together with the process that started them, and counts what they used."""

from __future__ import annotations

import contextlib
import ctypes
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from ctypes import wintypes
from typing import Any

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


def faults() -> int:
    """Return the page faults of this process so far, of whatever kind."""
    return int(_memory(_kernel.GetCurrentProcess()).faults)


def once(command: Sequence[str], environment: Mapping[str, str], files: Mapping[str, str]) -> dict[str, Any]:
    """Run a command with these files as its streams, and return what it used; what it leaves running ends then.

    It is in a job from its first instruction on, and its children with it: they end when the job is closed, at the
    latest by the end of this process. Ctrl-C does not reach them.
    """
    with contextlib.ExitStack() as opened:
        streams: dict[str, Any] = {name: opened.enter_context(open(file, _MODES[name])) for name, file in files.items()}
        job = wintypes.HANDLE(_kernel.CreateJobObjectW(None, None))
        _check(job.value or 0)
        opened.callback(_kernel.CloseHandle, job)
        limits = _Limits(flags=_KILL_ON_CLOSE)
        _check(_kernel.SetInformationJobObject(job, _LIMITS, ctypes.byref(limits), ctypes.sizeof(limits)))
        begin, flags = time.monotonic(), subprocess.CREATE_NEW_PROCESS_GROUP | _SUSPENDED
        started: Any = subprocess.Popen(command, creationflags=flags, env=dict(environment), **streams)
        process = wintypes.HANDLE(int(started._handle))
        try:
            _check(_kernel.AssignProcessToJobObject(job, process))
        except OSError:
            started.kill()
            raise
        _resume(process)
        status = started.wait()
        return {"wall": time.monotonic() - begin, "status": status, **_used(job, process)}


def _used(job: wintypes.HANDLE, process: wintypes.HANDLE) -> dict[str, Any]:
    """Return the seconds, faults and bytes of a process that has ended, and of its children.

    The peak is the process's alone, and so is any figure that wine does not count for a job.
    """
    found, memory = _Accounting(), _memory(process.value)
    _check(_kernel.QueryInformationJobObject(job, _ACCOUNTING, ctypes.byref(found), ctypes.sizeof(found), None))
    system, user, ignored = (ctypes.c_int64() for _ in range(3))
    ended = ctypes.byref(ignored)
    _check(_kernel.GetProcessTimes(process, ended, ended, ctypes.byref(system), ctypes.byref(user)))
    return {
        "user": max(found.user, user.value) / _TICKS,
        "system": max(found.system, system.value) / _TICKS,
        "minor_faults": max(found.faults, memory.faults),
        "peak_bytes": memory.peak,
    }
