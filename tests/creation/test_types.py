"""Types of new arrays, as a type checker sees them (mypy) and as they are."""

from typing import assert_type

import numpy as np
import numpy.typing as npt

import firsttouch as ft


def test_the_type_is_that_of_the_items() -> None:
    for array in (assert_type(ft.zeros(3), npt.NDArray[np.float64]), assert_type(ft.ones(3), npt.NDArray[np.float64])):
        assert array.dtype == np.float64
    for small in (
        assert_type(ft.empty(3, np.int8), npt.NDArray[np.int8]),
        assert_type(ft.zeros(3, np.int8, allocator="pool()"), npt.NDArray[np.int8]),
    ):
        assert small.dtype == np.int8
