"""Ctrl-C while constructors populate."""

import pytest

from tests.programs import run

pytestmark = pytest.mark.quick


def test_ctrl_c_is_answered_before_all_is_there() -> None:
    program = """
        import signal

        signal.signal(signal.SIGALRM, signal.default_int_handler)
        allocator = ft.pages(populate=1)
        for after in (0.02, 0.04, 0.08, 0.16, 0.32):  # a timer may fire too early, never too late for long
            signal.setitimer(signal.ITIMER_REAL, after)
            try:
                a = allocator.empty(2 << 30, "u1")
                signal.setitimer(signal.ITIMER_REAL, 0)
                del a
            except KeyboardInterrupt:
                print("interrupted", ft.stats(allocator).mapped)
                break
        """
    assert run(program) == "interrupted 0\n"


def test_ctrl_c_is_not_raised_by_another_threads_constructor() -> None:
    program = """
        import signal, threading

        def others():
            try:
                while not done.is_set():
                    ft.empty(100_000, allocator=pool)
            except BaseException as error:
                wrong.append(repr(error))

        signal.signal(signal.SIGALRM, signal.default_int_handler)
        pool, allocator = ft.pool(), ft.pages(populate=1)
        done, wrong, interrupted = threading.Event(), [], 0
        threads = [threading.Thread(target=others) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            signal.setitimer(signal.ITIMER_REAL, 0.02)
            try:
                allocator.empty(2 << 30, "u1")
            except KeyboardInterrupt:
                interrupted += 1
        done.set()
        for thread in threads:
            thread.join()
        print(interrupted, wrong)
        """
    assert run(program) == "5 []\n"
