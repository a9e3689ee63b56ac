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


#: A real signal from inside the bar, whose last stroke is always drawn.
INSIDE = """
    import os, signal, sys

    class Bar:
        def write(self, text):
            os.kill(os.getpid(), signal.SIGINT)
        def flush(self):
            pass

    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    allocator, real = ft.pages(populate={threads}, progress=True), sys.stderr
    sys.stderr = Bar()
    try:
        a = {call}
    except KeyboardInterrupt:
        sys.stderr = real
        print("interrupted", ft.stats(allocator).mapped, "a" in vars())
    """


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    "call",
    [
        "allocator.zeros(96 << 20, 'u1')",
        "allocator.zeros(96 << 20, 'u1', order='F')",  # NumPy's own function
        "ft.pages(populate=True, progress=True, numa='blocked:1').zeros((96, 1 << 20), 'u1')",
    ],
)
def test_ctrl_c_gives_the_array_back(call: str, threads: int) -> None:
    assert run(INSIDE.format(call=call, threads=threads)).split() == ["interrupted", "0", "False"]


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
            if any(line.why_not == "it was interrupted" for line in ft.receipts()):
                break
        print([line.why_not for line in ft.receipts() if line.wish == "populate"], ft.stats(allocator).mapped)
        """
    printed = run(program)
    assert "it was interrupted" in printed
    assert printed.rstrip().endswith(" 0")
