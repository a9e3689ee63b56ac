"""os.fork: both processes continue at once, whatever other threads were doing."""

import sys

import pytest

from tests.programs import ask, run

#: The tests' own threads make Python warn, with and without us.
QUIET = ("-W", "ignore::DeprecationWarning")


@pytest.mark.quick
@pytest.mark.parametrize("way", ["ft.install()", "ft.install(ft.pages('thp'))", "ft.use(ft.pool(decay=0)).__enter__()"])
def test_the_child_allocates_and_frees_at_once(way: str) -> None:
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


def test_while_other_threads_allocate_and_purge() -> None:
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
        for turn in range(40):
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


def test_a_child_of_a_child_of_a_child() -> None:
    printed = run("""
        import os
        ft.install()
        array = np.ones(3 << 20, np.uint8)
        for depth in range(6):
            child = os.fork()
            if child:
                os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])) if depth else None
                break
            array = array + 1
        if depth == 5 and not child:
            assert (array == 7).all()
            os._exit(9)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """)
    assert printed == "9\n"


@pytest.mark.quick
def test_idle_memory_decays_on_both_sides_afterwards() -> None:
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


@pytest.mark.quick
@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python warns of threads at a fork from 3.12 on")
@pytest.mark.parametrize("idle", [True, False])
def test_python_gives_no_warning_that_it_would_not_give_without_us(idle: bool) -> None:
    printed = run(
        f"""
        import os, time
        ft.install()
        kept = np.ones(3 << 20, np.uint8)
        assert probe.wait_until(lambda: "firsttouch" in probe.threads())
        for turn in range(20):
            array = np.ones(9 << 20, np.uint8)
            if {idle}:
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
