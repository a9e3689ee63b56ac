"""Helpers of programs under test. Imports nothing of firsttouch's."""

import importlib
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


def status(name: str) -> int:
    """A size in /proc/self/status in bytes: VmRSS, VmPeak, VmSize, VmHWM, ..."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        key, _, value = line.partition(":")
        if key == name:
            return int(value.split()[0]) * KIB
    raise LookupError(name)


def rss() -> int:
    """Resident bytes, summed over the mappings as the kernel knows them now."""
    for line in Path("/proc/self/smaps_rollup").read_text(encoding="ascii").splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) * KIB
    raise LookupError("Rss")


def threads() -> list[str]:
    """The names of this process's threads."""
    tasks = Path("/proc/self/task").iterdir()
    return [(task / "comm").read_text(encoding="ascii").strip() for task in tasks]


def in_thread(call: Callable[[], Any]) -> Any:
    """What a call returns, or raises, in a thread of its own, which has ended by then."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as executor:
        return executor.submit(call).result()


def wait_until(holds: Callable[[], bool], seconds: float = 120) -> bool:
    """Whether something comes true in time."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def in_interpreter(kind: str, program: str) -> str | None:
    """What goes wrong with a program in another interpreter, "isolated" or "legacy"; nothing if all is well."""
    is_new = sys.version_info >= (3, 13)
    interpreters = importlib.import_module("_interpreters" if is_new else "_xxsubinterpreters")
    other = interpreters.create(kind) if is_new else interpreters.create(isolated=kind == "isolated")
    said: str | None = None
    try:
        found = interpreters.exec(other, program) if is_new else interpreters.run_string(other, program)
        said = found and found.formatted
    except RuntimeError as error:  # before Python 3.13
        said = str(error)
    finally:
        interpreters.destroy(other)
    return said


def message(kind: type[BaseException], call: Callable[[], Any]) -> str:
    """What the exception says that `call` must raise."""
    try:
        call()
    except kind as error:
        return str(error)
    sys.exit(f"no {kind.__name__} was raised")
