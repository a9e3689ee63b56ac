"""Uninstalls after each test what the test installed in this process."""

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _uninstalled_after() -> Iterator[None]:
    yield
    import firsttouch as ft

    if ft.is_installed():
        ft.uninstall()
