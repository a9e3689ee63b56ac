"""Opening a handle: how long it is good, and what a forged one does."""

from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.programs import ask, run

pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")

#: Nothing waits for what these programs leave unopened.
_NO_GRACE = "from firsttouch import sharing; sharing._left = 0.0"


def test_memory_is_left_for_others() -> None:
    held, size, message = ask(f"""
        import json, os, pickle
        from firsttouch._firsttouch import headroom
        from tests.shared.test_opening import bytes_of_files
        {_NO_GRACE}
        free = headroom()
        n = max(64 << 20, free // 40)
        handles, held = [], 0
        for _ in range(free // 4 // n + 6):   # sparse: nothing is touched
            handles.append(pickle.dumps(ft.shared(n, np.uint8)))
            held = max(held, bytes_of_files())
        large = pickle.dumps(ft.shared(free // 2, np.uint8))     # the newest may be of any size
        message = probe.message(ft.sharing.SharedArrayError, lambda: pickle.loads(handles[0]))
        print(json.dumps([(held - n) / free, pickle.loads(large).nbytes / free, message]))
    """)
    assert held < 0.3  # others use memory meanwhile
    assert size == pytest.approx(1 / 2, rel=0.01)
    assert "of the memory that is free" in message


def bytes_of_files() -> int:
    import os

    found = 0
    for number in os.listdir("/proc/self/fd"):
        path = f"/proc/self/fd/{number}"
        try:
            if os.readlink(path).startswith("/memfd:firsttouch:"):
                found += os.stat(path).st_size
        except OSError:
            continue
    return found


def test_a_process_waits_its_grace_period_once() -> None:
    """Also one that multiprocessing forks, which ends in a way of its own."""
    printed = run("""
        import multiprocessing, os, pickle, time

        class Last:  # goes with the module, after all that was registered for the exit
            def __del__(self, write=os.write, clock=time.monotonic):
                write(1, f"{clock() - began}\\n".encode())

        def work():
            pickle.dumps(ft.shared(10))

        forked = time.monotonic()
        child = multiprocessing.get_context("fork").Process(target=work)
        child.start(); child.join()
        print(time.monotonic() - forked, flush=True)
        last, began = Last(), time.monotonic()
        work()
    """)
    assert all(float(seconds) > 1.9 for seconds in printed.split()), printed
    assert len(printed.split()) == 2


@pytest.mark.parametrize(
    ("forged", "words"), [({4: np.dtype(object)}, "would hold addresses"), ({1: -1}, "offset -1 lies before")]
)
def test_a_forged_part_of_a_handle_is_refused(forged: dict[int, Any], words: str) -> None:
    reduced: Any = ft.shared(1000).__reduce_ex__(5)
    with pytest.raises(ValueError, match=words):
        reduced[0](*(forged.get(at, part) for at, part in enumerate(reduced[1])))
    reduced[0](*reduced[1])
