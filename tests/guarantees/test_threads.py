"""Threads: see the page."""

import threading

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import MIB

pytestmark = pytest.mark.quick


def test_install_serves_threads_that_already_run() -> None:
    begin, found = threading.Event(), []

    def body() -> None:
        begin.wait(10)
        found.append(ft.get_allocator(np.ones(MIB)))

    thread = threading.Thread(target=body)
    thread.start()
    pool = ft.pool()
    ft.install(pool)
    begin.set()
    thread.join()
    assert found == [pool]
