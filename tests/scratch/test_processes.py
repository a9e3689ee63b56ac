"""Forks, exits, and interpreters without memory."""

import textwrap

import pytest

from tests.programs import run, start

pytestmark = pytest.mark.quick


#: The tests' own threads make Python warn, with and without us.
QUIET = ("-W", "ignore::DeprecationWarning")


@pytest.mark.quick
@pytest.mark.parametrize(
    "buffer", ["ft.ScratchBuffer('1 MiB')", "ft.FixedBuffer('8 MiB')", "ft.buffers.default_buffer()"]
)
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


@pytest.mark.quick
def test_the_child_leaves_the_scopes_that_it_was_in() -> None:
    printed = run("""
        import os, sys
        from tests.scratch.arrays import Kept, MIDDLE, churn
        kept, buffer = Kept(), ft.ScratchBuffer("1 MiB")
        @ft.scratch(buffer)
        def step(x):
            y = x + 1
            kept.make()
            child = os.fork()
            if child:
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            return child, y * 2
        with ft.scratch(buffer):
            kept.make()
            child, found = step(np.ones(MIDDLE // 8))
            assert (found == 4).all()
            churn(1)
        churn(1)
        assert kept.intact()
        kept.clear()
        del found
        assert buffer.used == 0
        assert ft.get_allocator() == ft.numpy_default()
        sys.exit(0 if child else 7)
    """)
    assert printed == ""


def test_while_other_threads_open_scopes() -> None:
    printed = run(
        """
        import os, threading
        from tests.scratch.arrays import Kept, MIDDLE, churn
        stop, kept = threading.Event(), Kept()
        def work():
            mine = Kept()
            while not stop.is_set():
                with ft.scratch() as s:
                    mine.make(3000); mine.make(MIDDLE, s.empty)
                    churn(1)
                assert mine.intact()
                if len(mine) > 20:
                    mine.clear()
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        buffer = ft.ScratchBuffer("64 KiB")
        for turn in range(40):
            with ft.scratch(buffer):
                kept.make(5000)
                child = os.fork()
                if not child:
                    with ft.scratch() as s, ft.scratch(ft.ScratchBuffer("1 MiB")):
                        churn(1)
                        right = kept.intact()
                    kept.clear()
                    os._exit(7 if right and not buffer.used else 8)
                churn(1)
                assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        stop.set()
        for thread in threads:
            thread.join()
        assert kept.intact()
        kept.clear()
        print(buffer.used)
    """,
        *QUIET,
    )
    assert printed == "0\n"


def test_a_thread_of_the_child_with_the_number_of_one_that_is_gone() -> None:
    printed = run(
        """
        import os, threading
        from tests.scratch.arrays import churn
        buffer, entered, done = ft.ScratchBuffer("1 MiB"), threading.Event(), threading.Event()
        def use(event):
            with ft.scratch(buffer):
                churn(1)
                entered.set()
                event.wait(60)
        first = threading.Thread(target=use, args=(done,))
        first.start()
        entered.wait(60)
        child = os.fork()
        if not child:
            other = threading.Thread(target=use, args=(entered,))
            other.start()
            other.join()
            with ft.scratch(buffer):
                churn(1)
            os._exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        done.set()
        first.join()
    """,
        *QUIET,
    )
    assert printed == "7\n"


ENDINGS = {
    "a scope that is open": "s = ft.scratch(); s.__enter__(); array = np.ones(50_000)",
    "scopes inside scopes, all open": """
        kept = []
        for turn in range(20):
            kept.append(ft.scratch(ft.ScratchBuffer("1 MiB") if turn % 2 else None))
            kept.append((kept[-1].__enter__(), np.ones(50_000)))
    """,
    "survivors in a module": "with ft.scratch() as s: kept = [np.ones(size) for size in (300, 50_000, 10**6)]",
    "survivors in a cycle": """
        class Node: pass
        node = Node(); node.self = node
        with ft.scratch(ft.FixedBuffer("1 MiB")) as node.scope:
            node.array = np.ones(50_000)
    """,
    "SystemExit inside": """
        with ft.scratch() as s, ft.scratch(ft.ScratchBuffer("1 MiB")):
            array = np.ones(50_000)
            raise SystemExit
    """,
    "a generator inside a scope": """
        def inside():
            with ft.scratch():
                yield np.ones(50_000)
        generator = inside(); array = next(generator)
    """,
    "an async generator nobody closed": """
        import asyncio
        async def inside():
            with ft.scratch():
                yield np.ones(50_000)
        async def main():
            global generator, array
            generator = inside(); array = await anext(generator)
        asyncio.run(main())
    """,
    "daemon threads inside scopes": """
        import threading, time
        def churn():
            while True:
                with ft.scratch() as s:
                    s.ones(50_000) + np.ones(50_000)
        for _ in range(3):
            threading.Thread(target=churn, daemon=True).start()
        time.sleep(0.2)
    """,
    "a thread that ends later, inside": """
        import threading, time
        def later():
            with ft.scratch():
                array = np.ones(50_000)
                time.sleep(0.3)
                assert (array * 2).all()
        threading.Thread(target=later).start()
    """,
    "a scope that ends at exit": """
        import atexit
        s = ft.scratch(); s.__enter__(); array = np.ones(50_000)
        atexit.register(s.__exit__, None, None, None)
    """,
    "a scope in a destructor, last of all": """
        import sys
        class Last:
            def __init__(self):
                self.scratch, self.step = ft.scratch(ft.ScratchBuffer("1 MiB")), ft.scratch(lambda x: x + 1)
                self.s = self.scratch.__enter__(); self.array = np.ones(50_000)
            def __del__(self):
                self.array = self.step(self.array)
                self.scratch.__exit__(None, None, None)
        sys.last = Last()
    """,
    "a task that never ended": """
        import asyncio
        async def waits():
            global array
            with ft.scratch():
                array = np.ones(50_000)
                await asyncio.Event().wait()
        async def main():
            global task
            task = asyncio.create_task(waits()); await asyncio.sleep(0.01)
        asyncio.run(main())
    """,
    "a stored exception": """
        @ft.scratch(warn=True)
        def fails():
            array = np.ones(50_000)
            raise ValueError
        try:
            fails()
        except ValueError as error:
            kept = error
    """,
    "memory views and raw memory": """
        with ft.scratch() as s:
            views = [memoryview(np.ones(50_000)), s.alloc(50_000), s.alloc(0)]
    """,
    "under an installed pool": "ft.install()\nwith ft.scratch(): array = np.ones(50_000); big = np.ones(10**6)",
    "in debug mode": "s = ft.scratch(ft.ScratchBuffer(debug=True)); s.__enter__(); array = np.ones(50_000); del array",
}


@pytest.mark.parametrize("program", ENDINGS.values(), ids=ENDINGS)
def test_it_ends_well(program: str) -> None:
    assert run(textwrap.dedent(program), "-X", "dev") == ""


def test_an_exception_nobody_catches_is_told_as_ever() -> None:
    finished = start("""
        @ft.scratch
        def fails(x):
            return x + 1, 1 / 0
        with ft.scratch():
            fails(np.ones(50_000))
    """)
    assert finished.returncode == 1
    assert finished.stderr.rstrip().endswith("ZeroDivisionError: division by zero")
    assert finished.stderr.count("Traceback") == 1


def test_without_numpy_at_import() -> None:
    """`firsttouch run` starts without it; the names are there all the same."""
    run(
        "import firsttouch as ft, sys\nassert ft.buffers.EscapeWarning and ft.scratch and ft.buffers.default_buffer",
        prologue="",
    )


pytest.importorskip("_testcapi")


@pytest.mark.parametrize("warm", ["", "with ft.scratch(ft.ScratchBuffer('64 KiB')): pass"])
def test_a_scope_that_cannot_be_entered_is_closed(warm: str) -> None:
    printed = run(
        f"""
        import _testcapi
        {warm}
        entered = refused = 0
        for n in range(40):
            buffer = ft.ScratchBuffer("64 KiB")
            manager = ft.scratch(buffer)
            _testcapi.set_nomemory(n, n + 1)
            try:
                manager.__enter__()
            except MemoryError:
                refused += 1
            else:
                entered += 1
                _testcapi.remove_mem_hooks()
                manager.__exit__(None, None, None)
            finally:
                _testcapi.remove_mem_hooks()
            buffer.reset()  # an error, if a scope is open
        print(entered > 0, refused > 0)
    """
    )
    assert printed == "True True\n"
