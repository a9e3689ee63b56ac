"""A typed wrapper of Numba's compiler; without Numba, its tests are skipped."""

from collections.abc import Callable
from typing import Any, TypeVar

import pytest

numba = pytest.importorskip("numba")

Function = TypeVar("Function", bound=Callable[..., Any])


def njit(function: Function) -> Function:
    """Compiles a function for each kind of arguments that it gets."""
    compiled: Function = numba.njit(function)
    return compiled
