"""Runs operations while memory fails, in every possible way, each in a child, because it may die. Prints what they do.

``python -m tests.memory_out.failing ours|python's NAME...``
"""

import ctypes
import os
import resource
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from firsttouch import _firsttouch
from tests.memory_out.operations import OPERATIONS

try:
    import _testcapi  # type: ignore[import-not-found]
except ImportError:
    _testcapi = None

#: Which of a request's steps fails first depends on what is left in Python's own free lists, hence several.
ROOMS = (8 << 20, 3_000_000, 70_000)
#: No operation asks so often.
MOST = 4000


def _same(result: Any, right: Any) -> bool:
    if isinstance(right, np.ndarray):
        return isinstance(result, np.ndarray) and np.array_equal(result, right)
    if isinstance(right, (int, str, tuple, bool, type, type(None))):
        return bool(result == right)
    return type(result) is type(right)


def _lost_error(error: BaseException) -> bool:
    """Whether CPython or NumPy lost a MemoryError."""
    return isinstance(error, SystemError) and ("exception set" in str(error) or "setting an exception" in str(error))


def _start(whose: str, n: int, onwards: bool) -> None:
    """Let the `n`-th request fail, and those that follow."""
    if whose == "ours":
        _firsttouch.fail_allocation(n, onwards)
    else:
        _testcapi.set_nomemory(n, 0 if onwards else n + 1)


def _stop(whose: str) -> bool:
    """Whether a request has failed, as far as one can tell."""
    if whose == "ours":
        return not _firsttouch.fail_allocation(0, False)
    _testcapi.remove_mem_hooks()
    return True


def _once(operation: Callable[[], Any], whose: str, n: int, onwards: bool, right: Any) -> tuple[bool, bool]:
    """Whether it worked, and whether a request failed."""
    try:
        _start(whose, n, onwards)
        result = operation()
    except MemoryError:
        return False, _stop(whose)
    except BaseException as error:
        _stop(whose)
        if whose != "ours" and _lost_error(error):
            return False, True
        raise AssertionError(f"request {n} failed, and this came: {error!r}") from error
    failed = _stop(whose)
    assert _same(result, right), f"request {n} failed, and the result was {result!r}, not {right!r}"
    return True, failed


def walk(operation: Callable[[], Any], whose: str, onwards: bool, right: Any) -> int:
    """Let the first, the second, ... request fail until none did; how many that were."""
    in_a_row = 0
    for n in range(1, MOST):
        worked, failed = _once(operation, whose, n, onwards, right)
        # Of Python's nobody tells whether one failed; and what works without a request may do so often.
        in_a_row = in_a_row + 1 if worked else 0
        if worked and (not failed or (whose != "ours" and in_a_row == 10)):
            return n
        if n % 16 == 0:
            assert _same(operation(), right), "memory is back, and it does not work"
    raise AssertionError("no end")


def exhaust(operation: Callable[[], Any], right: Any, room: int) -> str:
    """Limits the address space to `room` bytes more, takes all of it, tries again and again, and gives memory back."""
    malloc = ctypes.CDLL(None).malloc
    malloc.restype = ctypes.c_void_p
    size = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    worked = refused = 0
    kept: list[Any] = [None] * 300
    resource.setrlimit(resource.RLIMIT_AS, (size + room, before[1]))
    sizes = [1 << 20, 1 << 16, 1 << 14, 1 << 12, *(1 << bits for bits in range(11, 3, -1))]
    for nbytes in sizes:
        while malloc(nbytes):
            pass
    for n in range(300):
        try:
            result = operation()
        except MemoryError:
            refused += 1
            continue
        except BaseException as error:
            if not _lost_error(error):
                raise
            refused += 1
            continue
        kept[n] = result
        worked += 1
    resource.setrlimit(resource.RLIMIT_AS, before)
    for n, result in enumerate(kept):  # looked at only now, as that takes memory
        assert result is None or _same(result, right), f"the result was {result!r}, not {right!r}"
        kept[n] = None
    return f"{worked} worked, {refused} were refused"


def fail(name: str, whose: str) -> None:
    operation = OPERATIONS[name]
    right = operation()
    operation()
    # Where Python has no memory from some request on, CPython 3.13.0 itself loops for ever (it has none for the number
    # that a `finally` begins with), so that is left to RLIMIT_AS.
    for onwards in (False, True) if whose == "ours" else (False,):
        print(f"{whose}, {'onwards' if onwards else 'once'}:", end=" ", flush=True)
        print(walk(operation, whose, onwards, right), "requests", flush=True)
        assert _same(operation(), right), "memory is back, and it does not work"
    if whose == "ours":
        for room in ROOMS:
            print(f"RLIMIT_AS, {room} bytes above what there is:", end=" ", flush=True)
            print(exhaust(operation, right, room), flush=True)
        assert _same(operation(), right), "memory is back, and it does not work"


def main(whose: str, *names: str) -> int:
    """Return how many operations failed; what malloc gave is lost with the child that asked for it."""
    failed = 0
    for name in names:
        print(f"== {name}", flush=True)
        child = os.fork()
        if not child:
            status = 1
            try:
                fail(name, whose)
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        if status := os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
            print(f"{name} FAILED, with status {status}", flush=True)
            failed += 1
    return failed


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
