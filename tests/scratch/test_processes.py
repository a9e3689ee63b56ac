"""Forks, exits, and interpreters without memory."""

import sys

import pytest

from tests.programs import run

pytestmark = pytest.mark.quick


#: The tests' own threads make Python warn, with and without us.
QUIET = ("-W", "ignore::DeprecationWarning")


@pytest.mark.quick
@pytest.mark.parametrize(
    "buffer", ["ft.ScratchBuffer('1 MiB')", "ft.FixedBuffer('8 MiB')", "ft.buffers.default_buffer()"]
)
@pytest.mark.linux("fork")
def test_inside_a_scope(buffer: str) -> None:
    """The scope is the parent's; the child's arrays come from elsewhere until it opens one itself."""
    printed = run(
        f"""
        import os
        from tests.scratch.arrays import Kept, MIDDLE, LARGE, churn
        buffer, kept = {buffer}, Kept()
        with ft.scratch(buffer) as s:
            for size in (MIDDLE, LARGE, 2000):
                kept.make(size); kept.make(size, s.empty)
            for turn in range(5):
                child = os.fork()
                if not child:
                    used = buffer.used
                    assert kept.intact()
                    mine = Kept()
                    mine.make(); mine.make(LARGE)
                    assert buffer.used == used
                    text = probe.message(RuntimeError, lambda: s.empty(5))
                    assert "process" in text, text
                    for array, seed in kept.arrays:
                        array[:] = 0
                    with ft.scratch(ft.ScratchBuffer("1 MiB")) as own:
                        mine.make(MIDDLE, own.empty)
                        churn(1)
                    with ft.scratch():
                        mine.make()
                        churn(1)
                    assert mine.intact()
                    kept.clear(); mine.clear()
                    del array
                    assert buffer.used == 0
                    os._exit(7)
                kept.make()
                churn(1)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
                assert kept.intact()
        assert kept.intact()
        print(s.is_open)
    """,
        *QUIET,
    )
    assert printed == "False\n"


@pytest.mark.linux("fork")
@pytest.mark.skipif(not getattr(sys, "_is_gil_enabled", lambda: True)(), reason="children inherit locks of objects")
@pytest.mark.parametrize("turn", range(3))
def test_a_child_forked_at_the_first_use(turn: int) -> None:
    """What another thread makes for the first time at the fork, the child makes as well, and does not wait for."""
    program = """
        import os, signal, threading

        class Slow:
            def __getattr__(self, name):
                held = list(map(str, range(500_000)))  # while they are freed, others come to wait for the GIL
                raise AttributeError

        worker = threading.Thread(target=probe.message, args=(TypeError, lambda: ft.FixedBuffer(Slow())))
        worker.start()
        children = []
        while worker.is_alive():
            children.append(os.fork())
            if not children[-1]:
                signal.alarm(60)
                ft.FixedBuffer(100)
                os._exit(0)
        worker.join()
        print(any([os.waitpid(child, 0)[1] for child in children]))
    """
    assert run(program, *QUIET) == "False\n"


pytest.importorskip("_testcapi")


@pytest.mark.parametrize(
    "attempt",
    [
        "attempt = enter",
        "enter(); attempt = enter",
        "made(); attempt = made",
    ],
)
def test_no_memory_for_an_object(attempt: str) -> None:
    """A scope that cannot be entered is closed, the first as well as a later one; a result cannot be copied."""
    printed = run(
        f"""
        import _testcapi
        buffer = ft.ScratchBuffer("1 MiB")

        def enter():
            with ft.scratch(buffer):
                _testcapi.remove_mem_hooks()

        @ft.scratch(buffer)
        def made():
            return [np.ones(1000)]

        {attempt}
        done = refused = 0
        for n in range(60):
            _testcapi.set_nomemory(n, n + 1)
            try:
                attempt()
                done += 1
            except MemoryError:
                refused += 1
            finally:
                _testcapi.remove_mem_hooks()
            assert buffer.used == 0
            assert ft.get_allocator() == ft.numpy_default()
        print(done > 0, refused > 0)
    """
    )
    assert printed == "True True\n"
