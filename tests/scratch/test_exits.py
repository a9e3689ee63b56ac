"""The interpreter exits with open scopes and live arrays: status 0, nothing on standard error."""

import textwrap

import pytest

from tests.programs import run, start

pytestmark = pytest.mark.quick

ENDINGS = {
    "a scope that is open": "s = ft.scratch(); s.__enter__(); array = np.ones(50_000)",
    "scopes inside scopes, all open": """
        kept = []
        for turn in range(20):
            kept.append(ft.scratch(ft.ScratchBuffer() if turn % 2 else None))
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
        with ft.scratch() as s, ft.scratch(ft.ScratchBuffer()):
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
                self.scratch, self.step = ft.scratch(ft.ScratchBuffer()), ft.scratch(lambda x: x + 1)
                self.s = self.scratch.__enter__(); self.array = np.ones(50_000)
            def __del__(self):
                self.array = self.step(self.array)
                self.scratch.__exit__(None, None, None)
        sys.last = Last()
    """,
    "scratch memory of one's own": """
        from tests.scratch.test_own import Bump
        own = Bump(); s = ft.scratch(own); s.__enter__(); array = np.ones(50_000)
        with ft.scratch(Bump()): kept = np.ones(50_000)
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
        @ft.scratch(escape="warn")
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
    "marks that nobody rewound": "b = ft.ScratchBuffer(); m = b.mark(); array = b.ones(50_000); n = b.mark()",
    "under an installed pool": "ft.install()\nwith ft.scratch(): array = np.ones(50_000); big = np.ones(10**6)",
    "in debug mode": "s = ft.scratch(debug=True); s.__enter__(); array = np.ones(50_000); del array",
}


@pytest.mark.parametrize("flags", [(), ("-X", "dev")], ids=["", "dev"])
@pytest.mark.parametrize("program", ENDINGS.values(), ids=ENDINGS)
def test_it_ends_well(program: str, flags: tuple[str, ...]) -> None:
    assert run(textwrap.dedent(program), *flags) == ""


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
    run("import firsttouch as ft, sys\nassert ft.buffers.EscapeError and ft.scratch and ft.default_buffer", prologue="")
