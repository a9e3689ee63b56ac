"""Fork: see the page."""

import sys

import pytest

from tests.programs import ask, run

pytestmark = pytest.mark.quick

#: The tests' own threads make Python warn, with and without us.
QUIET = ("-W", "ignore::DeprecationWarning")
CHILD = """
import os
def in_child(body):
    child = os.fork()
    if not child:
        try:
            os._exit(7 if body() else 8)
        finally:
            os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


def test_what_a_child_process_writes_stays_its_own_unless_the_array_is_shared() -> None:
    run(
        CHILD
        + """
own, shared = ft.zeros(1 << 20, np.uint8, allocator=ft.pool()), ft.shared(1 << 20, np.uint8)
def writes():
    own[:] = 1
    shared[:] = 1
    return own.all() and shared.all()
in_child(writes)
assert not own.any() and shared.all()
"""
    )


@pytest.mark.parametrize("way", ["ft.install()", "ft.use(ft.pool(decay=0)).__enter__()"])
def test_a_child_process_made_by_fork_can_allocate_and_free_at_once(way: str) -> None:
    printed = run(
        f"""
        import os
        {way}
        kept = [(np.empty(size, np.uint8), size) for size in (50_000, 900_000, 5 << 20)]
        for array, size in kept:
            probe.fill(array, size)
        for turn in range(5):
            idle = [np.ones(3 << 20, np.uint8) for _ in range(4)]
            idle.clear()
            child = os.fork()
            if not child:
                assert all(probe.intact(array, size) for array, size in kept)
                for array, size in kept:
                    array[:] = 0
                kept.clear()
                del array
                fresh = [np.zeros(size, np.uint8) for size in (50_000, 900_000, 5 << 20, 40 << 20)]
                assert not any(array.any() for array in fresh)
                ft.trim(); ft.uninstall(); ft.install()
                again = np.ones(5 << 20, np.uint8)
                os._exit(7 if again.all() else 8)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert all(probe.intact(array, size) for array, size in kept)
        print("done")
    """,
        *QUIET,
    )
    assert printed == "done\n"


def test_a_child_process_made_by_fork_inherits_no_lock_that_another_thread_held() -> None:
    printed = run(
        """
        import os, threading, random
        ft.install(ft.pool(decay=0.1))
        stop = threading.Event()
        def churn(seed):
            dice, kept = random.Random(seed), []
            while not stop.is_set():
                array = np.empty(dice.randrange(20_000, 5 << 20), np.uint8)
                array[::4096] = seed
                kept.append(array)
                if len(kept) > 6:
                    kept.pop(dice.randrange(6))
                if dice.random() < 0.05:
                    ft.trim(ft.get_allocator())
        threads = [threading.Thread(target=churn, args=(seed,)) for seed in (1, 2, 3)]
        for thread in threads:
            thread.start()
        for turn in range(25):
            child = os.fork()
            if not child:
                arrays = [np.full(size, 5, np.uint8) for size in range(20_000, 4 << 20, 300_000)]
                ft.trim(ft.get_allocator())
                more = np.zeros(6 << 20, np.uint8)
                right = all((array == 5).all() for array in arrays) and not more.any()
                del arrays, more
                os._exit(7 if right else 8)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        stop.set()
        for thread in threads:
            thread.join()
        print(ft.stats(ft.get_allocator()).blocks)
    """,
        *QUIET,
    )
    assert printed == "0\n"


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python warns of threads at a fork from 3.12 on")
def test_python_warns_of_no_thread_of_firsttouch_at_a_fork() -> None:
    printed = run(
        """
        import os, time
        ft.install()
        kept = np.ones(3 << 20, np.uint8)
        assert probe.wait_until(lambda: "firsttouch" in probe.threads())
        for turn in range(20):
            array = np.ones(9 << 20, np.uint8)
            if turn % 2:
                del array
            child = os.fork()
            if not child:
                os._exit(7)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
            time.sleep(0.02 * (turn % 3))
        print("done")
    """,
        "-W",
        "error",
    )
    assert printed == "done\n"


def test_idle_memory_returns_to_the_system_in_both_processes_after_a_fork() -> None:
    """The background purger ends before a fork and comes back, in the child with its next use of memory."""
    printed = run("""
        import os
        pool = ft.pool(decay=0.3)
        ft.install(pool)
        def decays():
            array = np.ones(30 << 20, np.uint8)
            del array
            assert ft.stats(pool).idle >= 30 << 20
            assert probe.wait_until(lambda: ft.stats(pool).idle == 0), ft.stats(pool)
        decays()
        kept = np.ones(30 << 20, np.uint8)
        child = os.fork()
        if not child:
            decays()
            os._exit(7)
        del kept
        assert probe.wait_until(lambda: ft.stats(pool).idle == 0), ft.stats(pool)
        decays()
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    assert printed == "7\n"


def test_freed_memory_is_not_copied_when_written_again() -> None:
    """Recycled as it was, it would cost a copy of every page; given back before the fork it costs none."""
    shared = ask("""
        import json, os
        ft.install(ft.pool(decay=None))
        array = np.ones(100 << 20, np.uint8)
        del array
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            with open("/proc/self/smaps_rollup") as file:
                rollup = dict(line.split(":") for line in file.read().splitlines()[1:])
            resident = int(rollup["Rss"].split()[0]) - int(rollup["Pss_File"].split()[0] if "Pss_File" in rollup else 0)
            os.write(writer, json.dumps(resident).encode())
            os._exit(0)
        os.wait()
        print(os.read(reader, 100).decode())
    """)
    assert shared < 80 << 10  # KiB: none of the 100 MiB
