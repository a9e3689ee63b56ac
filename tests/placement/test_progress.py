"""Constructors that populate: their progress bar, and Ctrl-C while they work."""

import sys

import pytest

import firsttouch as ft
from tests.programs import run

pytestmark = pytest.mark.quick

MIB = 1 << 20


def test_a_bar_is_drawn_while_an_array_is_populated(capsys: pytest.CaptureFixture[str]) -> None:
    array = ft.pages(populate=True, progress=True).zeros(64 * MIB, "u1")
    drawn = capsys.readouterr()
    assert drawn.out == ""
    assert drawn.err.endswith("\rtouch [########################################] 100%\n")
    assert not array.any()
    ft.pages(populate=True).zeros(64 * MIB, "u1")
    assert capsys.readouterr().err == ""


def test_where_nobody_can_see_it_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    for nobody in (None, open("/dev/null")):  # noqa: SIM115
        if nobody is not None:
            nobody.close()
        monkeypatch.setattr(sys, "stderr", nobody)
        assert ft.pages(populate=True, progress=True).zeros(8 * MIB, "u1").sum() == 0


def test_ctrl_c_is_answered_before_all_is_there() -> None:
    program = """
        import signal

        signal.signal(signal.SIGALRM, signal.default_int_handler)
        allocator = ft.pages(populate=1)
        for after in (0.02, 0.04, 0.08, 0.16, 0.32):  # a timer may fire too early, never too late for long
            signal.setitimer(signal.ITIMER_REAL, after)
            try:
                a = allocator.empty(1 << 30, "u1")
                signal.setitimer(signal.ITIMER_REAL, 0)
                del a
            except KeyboardInterrupt:
                pass
            if any(line.why_not == "it was interrupted" for line in ft.placement.receipts()):
                break
        print([line.why_not for line in ft.placement.receipts() if line.wish == "populate"], ft.stats(allocator).mapped)
        """
    printed = run(program)
    assert "it was interrupted" in printed
    assert printed.rstrip().endswith(" 0")


def test_ctrl_c_is_not_raised_by_another_threads_constructor() -> None:
    program = """
        import os, signal, sys, threading

        class Bar:
            def write(self, text):
                os.kill(os.getpid(), signal.SIGINT)
            def flush(self):
                pass

        def others():
            try:
                while not done.is_set():
                    ft.empty(100_000, allocator=pool)
            except BaseException as error:
                wrong.append(repr(error))

        signal.signal(signal.SIGINT, signal.default_int_handler)
        pool, allocator, real = ft.pool(), ft.pages(populate=1, progress=True), sys.stderr
        done, wrong, interrupted = threading.Event(), [], 0
        threads = [threading.Thread(target=others) for _ in range(2)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            sys.stderr = Bar()
            try:
                allocator.empty(96 << 20, "u1")
            except KeyboardInterrupt:
                interrupted += 1
            sys.stderr = real
        done.set()
        for thread in threads:
            thread.join()
        print(interrupted, wrong)
        """
    assert run(program) == "5 []\n"
