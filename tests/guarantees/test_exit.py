"""Exit: see the page."""

import signal
import textwrap
from pathlib import Path

import pytest

from tests.programs import run, start

pytestmark = pytest.mark.quick


def test_a_process_that_is_killed_leaves_nothing_behind(tmp_path: Path) -> None:
    before = set(Path("/dev/shm").iterdir())
    finished = start(
        """
        import os, signal
        ft.install()
        arrays = [np.ones(1 << 20), ft.shared(1 << 20), ft.ScratchBuffer().ones(1 << 20), ft.pages("thp").ones(1 << 20)]
        os.kill(os.getpid(), signal.SIGKILL)
        """,
        env={"TMPDIR": str(tmp_path)},
    )
    assert finished.returncode == -signal.SIGKILL
    shared = [found for found in set(Path("/dev/shm").iterdir()) - before if "firsttouch" in found.name]
    assert [*shared, *tmp_path.iterdir()] == []


ENDINGS = {
    "arrays alive in a module": """
        kept = [np.ones(size) for size in (10, 10_000, 1_000_000)]
        with ft.scratch() as s: kept += [np.ones(size) for size in (300, 50_000, 10**6)]
    """,
    "arrays alive in a cycle": """
        class Node: pass
        node = Node(); node.self = node; node.array = np.ones(1_000_000)
        node.pool = ft.pool(); node.objects = np.full(100_000, node, object)
        with ft.scratch(ft.FixedBuffer("1 MiB")) as node.scope: node.scratch = np.ones(50_000)
    """,
    "blocks and scopes inside each other, all open": """
        kept = []
        for turn in range(20):
            kept.append([ft.scratch(), ft.scratch(ft.ScratchBuffer("1 MiB")), ft.use(ft.pool())][turn % 3])
            kept.append((kept[-1].__enter__(), np.ones(50_000)))
    """,
    "generators inside blocks and scopes": """
        import asyncio
        def inside():
            with ft.use(ft.pool()), ft.scratch():
                yield np.ones(50_000)
        async def later():
            with ft.scratch():
                yield np.ones(50_000)
        async def main():
            global array, generators
            generators = inside(), later(); array = next(generators[0]), await anext(generators[1])
        asyncio.run(main())
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
    "a pool that decays never": "ft.install(ft.pool(decay=None)); np.ones(1_000_000)",
    "an installed pool among the garbage": "ft.install(ft.pool()); a = np.ones(9**6); ft.install(); b = a + 1",
    "uninstalled, arrays alive": "a = np.ones(1_000_000); ft.uninstall(); b = a + 1",
    "daemon threads that allocate": """
        import threading, time
        def churn():
            while True:
                with ft.scratch() as s:
                    s.ones(50_000) + np.ones(50_000)
                np.ones(300_000) + np.zeros(300_000)
        for _ in range(3):
            threading.Thread(target=churn, daemon=True).start()
        time.sleep(0.2)
    """,
    "daemon threads inside of decorated functions": """
        import asyncio, threading, time
        step = ft.scratch(lambda x: [x + 1])
        def churn():
            while True:
                step(np.ones(700))
        async def churn_later():
            while True:
                step(np.ones(700))
                await asyncio.sleep(0)
        for target in (churn, ft.scratch(churn), lambda: asyncio.run(churn_later())):
            threading.Thread(target=target, daemon=True).start()
        time.sleep(0.2)
    """,
    "daemon threads inside of an allocator written in Python": """
        import ctypes, threading, time
        class Own:
            def allocate(self, nbytes, alignment, zeroed):
                sum(range(100_000))
                block = ctypes.create_string_buffer(nbytes + alignment)
                address = -(-ctypes.addressof(block) // alignment) * alignment
                blocks[address] = block
                return address
            def deallocate(self, address, nbytes):
                del blocks[address]
        blocks = {}
        def churn(own):
            while True:
                ft.ones(700, allocator=own)
        for _ in range(3):
            threading.Thread(target=churn, args=(Own(),), daemon=True).start()
        time.sleep(0.2)
    """,
    "a daemon thread that trims and installs": """
        import threading, time
        def churn():
            while True:
                ft.install(); ft.trim(); ft.uninstall()
        threading.Thread(target=churn, daemon=True).start()
        time.sleep(0.2)
    """,
    "a thread that ends later": """
        import threading, time
        def later():
            with ft.scratch():
                array = np.ones(50_000)
                time.sleep(0.3)
                assert (array * 2).all() and (np.ones(1_000_000) * 2).all()
        threading.Thread(target=later).start()
    """,
    "arrays made at exit": """
        import atexit
        kept, scope = [], ft.scratch()
        scope.__enter__(); array = np.ones(50_000)
        atexit.register(scope.__exit__, None, None, None)
        atexit.register(lambda: kept.append(np.ones(1_000_000)))
        atexit.register(ft.uninstall)
        atexit.register(ft.trim)
    """,
    "what is freed last of all": """
        import sys
        class Last:
            def __init__(self):
                self.scratch, self.step = ft.scratch(ft.ScratchBuffer("1 MiB")), ft.scratch(lambda x: x + 1)
                self.s = self.scratch.__enter__(); self.array = np.ones(50_000)
                self.large = np.ones(1_000_000)
            def __del__(self):
                self.array, self.large = self.step(self.array), self.large + 1
                self.scratch.__exit__(None, None, None)
        sys.last = Last()
    """,
    "exceptions that are kept": """
        @ft.scratch
        def fails():
            array = np.ones(50_000)
            raise ValueError
        kept = []
        for call in (fails, lambda: np.empty(1 << 62, np.uint8)):
            try:
                call()
            except (ValueError, MemoryError) as error:
                kept.append(error)
    """,
    "SystemExit inside a block": """
        with ft.use(ft.pool()), ft.scratch() as s, ft.scratch(ft.ScratchBuffer("1 MiB")):
            array = np.ones(1_000_000)
            raise SystemExit
    """,
    "large objects that are no arrays": """
        import sys, atexit
        class Late:
            def __init__(self): self.kept = [bytes(1 << 20), bytearray(1 << 20), np.ones(1 << 20)]
            def __del__(self): self.kept.append(bytes(1 << 20))
        late, sys.kept, loop = Late(), [bytes(1 << 20), Late()], [Late()]
        loop.append(loop)
        atexit.register(lambda: bytes(1 << 20))
    """,
    "memory views": """
        view = memoryview(np.ones(1_000_000)); frozen = np.frombuffer(view)
        with ft.scratch() as s:
            views = [memoryview(np.ones(50_000)), memoryview(s.empty(50_000))]
    """,
}


#: Runs each in a child, which ends as any interpreter does.
EACH = """
import os, sys
for name, program in {endings}.items():
    child = os.fork()
    if not child:
        ft.install()
        exec(program)
        break
    if os.waitpid(child, 0)[1]:
        sys.exit(name)
"""


@pytest.mark.parametrize("flags", [(), ("-X", "dev")], ids=["", "dev"])
def test_the_interpreter_exits_normally_while_arrays_and_scopes_are_alive(flags: tuple[str, ...]) -> None:
    endings = {name: textwrap.dedent(program) for name, program in ENDINGS.items()}
    assert run(EACH.format(endings=endings), *flags, timeout=290) == ""
