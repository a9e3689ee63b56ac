"""The interpreter exits with live arrays, threads, blocks and exceptions: status 0, nothing on standard error."""

import signal
import textwrap

import pytest

from tests.programs import run, start

pytestmark = pytest.mark.quick

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


@pytest.mark.parametrize("flags", [(), ("-X", "dev")], ids=["", "dev"])
@pytest.mark.parametrize("program", ENDINGS.values(), ids=ENDINGS)
def test_it_ends_well(program: str, flags: tuple[str, ...]) -> None:
    assert run("ft.install()\n" + textwrap.dedent(program), *flags) == ""


def test_an_exception_nobody_catches_is_told_as_ever() -> None:
    finished = start("""
        ft.install()
        def fails(array):
            with ft.use(ft.pool()):
                return array + 1, 1 / 0
        fails(np.ones(1_000_000))
    """)
    assert finished.returncode == 1
    assert finished.stderr.rstrip().endswith("ZeroDivisionError: division by zero")
    assert finished.stderr.count("Traceback") == 1


def test_os_exit_and_signals_end_it_too() -> None:
    assert run("import os\nft.install()\narray = np.ones(1 << 20)\nos._exit(0)") == ""
    finished = start("import os, signal\nft.install()\na = np.ones(1 << 20)\nos.kill(os.getpid(), signal.SIGTERM)")
    assert finished.returncode == -signal.SIGTERM


def test_signals_go_to_the_programs_own_threads() -> None:
    """The background purger blocks them all, so Python's handlers run as if it were not there."""
    printed = run("""
        import signal, os, time
        from pathlib import Path
        ft.install()
        kept = np.ones(1 << 20)
        assert probe.wait_until(lambda: "firsttouch" in probe.threads())
        tasks = Path("/proc/self/task").iterdir()
        [purger] = [task for task in tasks if (task / "comm").read_text() == "firsttouch\\n"]
        [line] = [line for line in (purger / "status").read_text().splitlines() if line.startswith("SigBlk")]
        blocked = int(line.split()[1], 16)
        assert all(blocked >> (number - 1) & 1 for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP})
        seen = []
        signal.signal(signal.SIGUSR1, lambda number, frame: seen.append(number))
        for _ in range(50):
            os.kill(os.getpid(), signal.SIGUSR1)
            time.sleep(0.001)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        signal.signal(signal.SIGALRM, lambda number, frame: seen.append("alarm"))
        time.sleep(0.2)
        print(seen.count(signal.SIGUSR1), seen[-1])
    """)
    assert printed == "50 alarm\n"


def test_the_background_purger_ends_when_there_is_nothing_to_look_after() -> None:
    run("""
        ft.install(ft.pool(decay=0.2))
        array = np.ones(1 << 20)
        assert probe.wait_until(lambda: probe.threads().count("firsttouch") == 1)
        del array
        assert probe.wait_until(lambda: "firsttouch" not in probe.threads())
        array = np.ones(1 << 20)
        assert probe.wait_until(lambda: probe.threads().count("firsttouch") == 1)
    """)
