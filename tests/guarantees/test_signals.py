"""Signals: see the page."""

import pytest

from tests.programs import run

pytestmark = pytest.mark.quick


def test_no_signal_handler_is_installed() -> None:
    run("""
        def caught():
            with open("/proc/self/status") as status:
                masks = [int(line.split()[1], 16) for line in status if line.startswith(("SigCgt", "SigIgn"))]
            return [mask & ~(3 << 31) for mask in masks]  # 32 and 33 belong to the C library's threads
        import signal
        before, handlers = caught(), [signal.getsignal(number) for number in signal.valid_signals()]
        ft.install()
        arrays = [kind.zeros(1 << 20) for kind in (ft.guarded(), ft.pages(populate=True))]
        arrays += [ft.shared(1000), np.ones(1 << 20)]
        with ft.scratch():
            np.ones(5000)
        ft.inspect(arrays[0])
        assert caught() == before
        assert [signal.getsignal(number) for number in signal.valid_signals()] == handlers
    """)


def test_signals_are_delivered_to_the_threads_of_the_program() -> None:
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
        signal.signal(signal.SIGALRM, lambda number, frame: seen.append("alarm"))
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert probe.wait_until(lambda: seen[-1] == "alarm")
        print(seen.count(signal.SIGUSR1), seen[-1])
    """)
    assert printed == "50 alarm\n"


#: A signal during a prefault.
INSIDE = """
    import os, signal, sys

    signal.signal(signal.SIGALRM, signal.default_int_handler)
    allocator = ft.pages(populate={threads})
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.02)
        a = {call}
    except KeyboardInterrupt:
        sys.stdout.write("interrupted ")
    # The traceback, which ended with the clause above, may refer to the array from within a function of NumPy's.
    print(ft.stats(allocator).mapped, "a" in vars())
    """


@pytest.mark.parametrize(
    ("call", "threads"),
    [
        ("allocator.zeros(2 << 30, 'u1')", 1),
        ("allocator.full(2 << 30, 1, 'u1')", 1),
        ("ft.touch(ft.pages().zeros(2 << 30, 'u1'), 1)", 1),
        ("allocator.zeros(2 << 30, 'u1', order='F')", 3),  # NumPy's own function
    ],
)
def test_control_c_during_a_prefault_releases_the_array(call: str, threads: int) -> None:
    assert run(INSIDE.format(call=call, threads=threads)).split() == ["interrupted", "0", "False"]
