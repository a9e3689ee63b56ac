"""Exit: see the page."""

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tests.programs import environment, run, start

pytestmark = pytest.mark.quick


def test_the_exit_status_of_a_program_under_firsttouch_run_is_its_own() -> None:
    text = "import sys, numpy as np; a = np.ones(10**6); sys.exit(7)"
    command = [sys.executable, "-m", "firsttouch", "run", "--limit", "auto", "-q", "-c", text]
    finished = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stdout, finished.stderr) == (7, "", "")


def test_a_process_that_is_killed_leaves_nothing_behind() -> None:
    before = {path: set(path.iterdir()) for path in map(Path, ("/dev/shm", "/tmp"))}
    finished = start("""
        import os, signal
        print(os.getpid(), flush=True)
        ft.install()
        arrays = [np.ones(1 << 20), ft.shared(1 << 20), ft.ScratchBuffer().ones(1 << 20), ft.pages("thp").ones(1 << 20)]
        os.kill(os.getpid(), signal.SIGKILL)
    """)
    assert finished.returncode == -signal.SIGKILL
    mine = [found for path, old in before.items() for found in set(path.iterdir()) - old if "firsttouch" in found.name]
    assert not mine


ENDINGS = {
    "arrays alive in a module": "kept = [np.ones(size) for size in (10, 10_000, 1_000_000)]",
    "arrays alive in a cycle": """
        class Node: pass
        node = Node(); node.self = node; node.array = np.ones(1_000_000)
        node.pool = ft.pool(); node.objects = np.full(100_000, node, object)
    """,
    "a block that is open": "scope = ft.use(ft.pool()); scope.__enter__(); array = np.ones(1_000_000)",
    "a generator inside a block": """
        def inside():
            with ft.use(ft.pool()):
                yield np.ones(1_000_000)
        generator = inside(); array = next(generator)
    """,
    "a pool that decays never": "ft.install(ft.pool(decay=None)); np.ones(1_000_000)",
    "an installed pool among the garbage": "ft.install(ft.pool()); a = np.ones(9**6); ft.install(); b = a + 1",
    "uninstalled, arrays alive": "a = np.ones(1_000_000); ft.uninstall(); b = a + 1",
    "daemon threads that allocate": """
        import threading, time
        def churn():
            while True:
                np.ones(300_000) + np.zeros(300_000)
        for _ in range(3):
            threading.Thread(target=churn, daemon=True).start()
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
            time.sleep(0.3)
            assert (np.ones(1_000_000) * 2).all()
        threading.Thread(target=later).start()
    """,
    "arrays made at exit": """
        import atexit
        kept = []
        atexit.register(lambda: kept.append(np.ones(1_000_000)))
        atexit.register(ft.uninstall)
        atexit.register(ft.trim)
    """,
    "an array that is freed last of all": """
        import sys
        class Last:
            def __init__(self): self.array = np.ones(1_000_000)
            def __del__(self): self.array = self.array + 1
        sys.last = Last()
    """,
    "a pending exception": """
        try:
            np.empty(1 << 62, np.uint8)
        except MemoryError as error:
            kept = error
    """,
    "SystemExit inside a block": """
        with ft.use(ft.pool()):
            array = np.ones(1_000_000)
            raise SystemExit
    """,
    "memory views over arrays": "view = memoryview(np.ones(1_000_000)); frozen = np.frombuffer(view)",
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


def test_the_background_thread_ends_when_nothing_is_idle() -> None:
    run("""
        ft.install(ft.pool(decay=0.2))
        array = np.ones(1 << 20)
        assert probe.wait_until(lambda: probe.threads().count("firsttouch") == 1)
        del array
        assert probe.wait_until(lambda: "firsttouch" not in probe.threads())
        array = np.ones(1 << 20)
        assert probe.wait_until(lambda: probe.threads().count("firsttouch") == 1)
    """)
