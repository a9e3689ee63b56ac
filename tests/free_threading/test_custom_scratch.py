"""Custom scratch memory whose last buffer may end in one thread while another asks for one."""

import contextvars
import threading
from typing import Any

import numpy as np
import pytest

import firsttouch as ft
from tests.free_threading.forks import forked
from tests.probe import wait_until
from tests.scratch.own_bump import Bump

pytestmark = pytest.mark.quick


class Slow(Bump):
    """Waits in the rewind of the last mark until it may go on."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.rewinding, self.may_end = threading.Event(), threading.Event()
        self.calls: list[str] = []

    def mark(self) -> int:
        self.calls.append("mark")
        return super().mark()

    def rewind(self, mark: int) -> None:
        self.rewinding.set()
        assert self.may_end.wait(30)
        super().rewind(mark)
        self.calls.append("rewound")


def start(work: Any) -> threading.Thread:
    thread = threading.Thread(target=contextvars.Context().run, args=(work,))
    thread.start()
    return thread


def use(memory: Slow) -> None:
    with ft.scratch(memory) as scope:
        scope.empty(1000)[:] = 1


def survive(memory: Slow) -> None:
    """Leave an array behind that keeps the backing when the buffer is gone, and drop it."""
    with ft.scratch(memory) as scope:
        kept = [scope.empty(1000)]
    del scope
    kept.clear()


def test_a_new_buffer_waits_until_the_last_one_has_rewound() -> None:
    memory = Slow()
    first = start(lambda: survive(memory))
    assert memory.rewinding.wait(30)
    second = start(lambda: use(memory))
    early = wait_until(lambda: memory.calls.count("mark") > 1, 0.3)
    memory.may_end.set()
    first.join()
    second.join()
    assert not early
    assert memory.calls == ["mark", "rewound", "mark", "rewound"]
    assert memory.top == 0


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_does_not_wait_for_a_thread_that_is_not_there() -> None:
    memory = Slow()
    first = start(lambda: survive(memory))
    assert memory.rewinding.wait(30)

    def child() -> None:
        memory.may_end.set()
        use(memory)

    forked(child)
    memory.may_end.set()
    first.join()


def test_one_buffer_for_all_threads_that_ask_at_once() -> None:
    for _ in range(50):
        memory = Bump(1 << 16)
        together, found = threading.Barrier(4), list[Any]()

        def ask(memory: Bump = memory, together: threading.Barrier = together, found: list[Any] = found) -> None:
            together.wait()
            found.append(ft.default_buffer(lambda: memory))

        threads = [start(ask) for _ in range(4)]
        for thread in threads:
            thread.join()
        assert len({id(buffer) for buffer in found}) == 1
        assert np.all([isinstance(buffer, ft.buffers.Buffer) for buffer in found])
