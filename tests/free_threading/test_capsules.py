"""The capsules that all threads share count no references where threads run beside each other."""

import sys
import sysconfig
from typing import Any

import pytest

import firsttouch as ft
from firsttouch import _firsttouch

pytestmark = [
    pytest.mark.quick,
    pytest.mark.skipif(not sysconfig.get_config_var("Py_GIL_DISABLED"), reason="with the GIL a count costs nothing"),
]


def capsule(allocator: Any) -> object:
    """What `use()` of an allocator puts into the context."""
    outside = _firsttouch.enter(allocator)
    found = _firsttouch.enter(ft.numpy_default())
    _firsttouch.leave(outside)
    return found


def is_immortal(found: object) -> bool:
    told: bool = sys._is_immortal(found)  # type: ignore[attr-defined]
    return told


def test_that_of_the_processs_own_pool_is_one_and_immortal() -> None:
    first, second = capsule(_firsttouch.default_pool()), capsule(_firsttouch.default_pool())
    assert first is second
    assert is_immortal(first)


def test_those_of_others_end_with_them() -> None:
    assert not is_immortal(capsule(ft.pool()))
