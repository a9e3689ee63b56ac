"""The zero-page trap: is_backed and check_backed."""

import warnings

import numpy as np
import pytest

import firsttouch as ft
from tests.sight.conftest import PAGE, fresh

pytestmark = pytest.mark.quick


def test_is_backed() -> None:
    array = fresh(4)
    assert not ft.is_backed(array)
    array[: 3 * PAGE] = 1
    assert not ft.is_backed(array)
    assert ft.is_backed(array[: 3 * PAGE])
    int(array[3 * PAGE])
    assert not ft.is_backed(array)
    array[3 * PAGE] = 0  # zeros of its own
    assert ft.is_backed(array)
    assert ft.is_backed(np.empty(0))


def test_reading_what_is_not_there_is_told() -> None:
    array = fresh(10)
    words = r"40 KiB of the array \(uint8, shape \(40960,\)\)"
    with pytest.warns(ft.inspection.NotBackedWarning, match=words) as told, ft.check_backed(array) as check:
        array.sum()
    assert told[0].filename == __file__
    assert (check.unbacked, check.first_touched) == ([10 * PAGE], [0])


def test_once_read_it_stays_a_trap() -> None:
    """A warm-up does not help: the second time reads the same zero page."""
    array = fresh(10)
    array.sum()
    with pytest.warns(ft.inspection.NotBackedWarning), ft.check_backed(array):
        array.sum()


def test_the_array_is_named() -> None:
    there, missing = np.ones(10 * PAGE, np.uint8), fresh(10)
    with (
        pytest.warns(ft.inspection.NotBackedWarning, match=r"16 KiB of array 2 of 2"),
        ft.check_backed(there, missing) as check,
    ):
        np.add(there[: 4 * PAGE], missing[: 4 * PAGE])
    assert check.unbacked == [0, 4 * PAGE]


def test_quiet_where_all_is_well() -> None:
    array, untouched, out = fresh(10), fresh(3), fresh(10)
    array[:] = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with ft.check_backed(array, untouched, out) as check:
            np.copyto(out, array)
        with ft.check_backed():
            pass
    assert check.unbacked == [0, 0, 0]
    assert check.first_touched == [0, 0, 10 * PAGE]


def test_an_exception_is_not_talked_over() -> None:
    array = fresh(10)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ZeroDivisionError), ft.check_backed(array):
            _ = int(array.sum()) // int(array[0])


def test_resized_meanwhile() -> None:
    array = np.ones(10)
    with ft.check_backed(array) as check:
        array.resize(10**6, refcheck=False)
        array[:] = 1
    assert check.unbacked == [0]


def test_again() -> None:
    array = fresh(4)
    check = ft.check_backed(array)
    with pytest.warns(ft.inspection.NotBackedWarning), check:
        array.sum()
    array[:] = 1
    with check:
        array.sum()
    assert check.unbacked == [0]
