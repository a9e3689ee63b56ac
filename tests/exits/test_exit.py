"""How programs end: by an exception, by os._exit, by a signal."""

import signal

import pytest

from tests.programs import run, start

pytestmark = pytest.mark.quick


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
