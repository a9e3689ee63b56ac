"""Uninstalls after each test what the test installed in this process, and lets Ctrl-C reach what tests start."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def _interruptible() -> None:
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in background jobs; children inherit it
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(autouse=True)
def _uninstalled_after() -> Iterator[None]:
    yield
    import firsttouch as ft

    if ft.is_installed():
        ft.uninstall()
