"""Functions on shared arrays for other processes; importable, as spawned processes require."""

import os
import queue
import signal
import time
from typing import Any

import numpy as np

import firsttouch as ft


def links() -> list[str]:
    """What the files that this process has open are called."""
    found = []
    for number in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{number}"))
        except OSError:
            continue
    return found


def memory_files() -> int:
    """How many pieces of shared memory this process knows by a file."""
    return sum(link.startswith("/memfd:firsttouch:") for link in links())


def write(a: np.ndarray, value: float) -> tuple[str, bool, float]:
    """Writes to the first element; what arrived, whether it may be written, and the last element."""
    a.flat[0] = value
    return type(a).__name__, a.flags.writeable, float(a.flat[-1])


def total(a: np.ndarray) -> float:
    return float(a.sum())


def made(n: int) -> np.ndarray:
    """An array that this process alone holds, until it has arrived."""
    a = ft.shared(n)
    a[:] = np.arange(n)
    return a


def passed_on(a: np.ndarray) -> np.ndarray:
    return ft.sharing.share(a)


class Slow:
    """Takes its time to be pickled."""

    def __reduce__(self) -> Any:
        time.sleep(0.5)
        return Slow, ()


def put(into: Any, n: int, *before: object) -> None:
    """An array behind other things; `Slow` holds up the thread which pickles, and the process ends meanwhile."""
    for thing in before:
        into.put(thing)
    into.put(made(n))


def put_and_wait(into: Any, n: int, wait: Any) -> None:
    """Hands an array over and lets it go; ends when it is told."""
    a = made(n)
    a[:] = 1  # all of it is there
    into.put(a)
    del a
    wait.get()


def die_with(into: Any, n: int) -> None:
    """Is killed while it holds an array."""
    a = ft.shared(n)
    a[:] = 1
    into.put(a)
    into.close()
    into.join_thread()
    os.kill(os.getpid(), signal.SIGKILL)


def hold(a: np.ndarray, into: Any) -> None:
    """Holds an array until it is killed."""
    into.put(float(a[0]))
    time.sleep(60)


def take(into: Any) -> Any:
    try:
        return into.get(timeout=60)
    except queue.Empty:
        raise AssertionError("nothing came") from None
