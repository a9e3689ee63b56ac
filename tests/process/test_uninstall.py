"""uninstall(): no new arrays; existing ones stay."""

import numpy as np
import pytest

import firsttouch as ft
from tests.probe import MIB, fill, intact

pytestmark = pytest.mark.quick


def test_without_install_it_does_nothing() -> None:
    ft.uninstall()
    ft.uninstall()
    assert not ft.is_installed()


def test_living_arrays_stay_valid_and_go_back_to_their_pool() -> None:
    pool = ft.pool()
    ft.install(pool)
    arrays = [np.empty(size, np.uint8) for size in (40_000, 300_000, 3 * MIB, 33 * MIB)]
    for seed, array in enumerate(arrays):
        fill(array, seed)
    ft.uninstall()
    assert ft.get_allocator() == ft.numpy_default()
    assert all(intact(array, seed) for seed, array in enumerate(arrays))
    assert {ft.get_allocator(array) for array in arrays} == {pool}
    assert ft.stats(pool).blocks == len(arrays)
    arrays.clear()
    del array
    assert ft.stats(pool).blocks == 0


def test_a_living_array_still_grows_in_its_pool() -> None:
    pool = ft.pool()
    ft.install(pool)
    array = np.empty(MIB, np.uint8)
    fill(array, 5)
    ft.uninstall()
    array.resize(40 * MIB, refcheck=False)
    assert intact(array, 5, MIB)
    assert not array[MIB:].any()
    assert ft.get_allocator(array) == pool


def test_on_and_off_again_and_again() -> None:
    pool, kept = ft.pool(), []
    for turn in range(200):
        if turn % 2:
            ft.install(pool if turn % 3 else "process")
        else:
            ft.uninstall()
        array = np.empty(50_000 + 1000 * turn, np.uint8)
        fill(array, turn)
        kept.append((turn, array))
        if len(kept) > 20:
            seed, oldest = kept.pop(0)
            assert intact(oldest, seed)
    assert all(intact(array, seed) for seed, array in kept)


def test_what_is_idle_can_be_trimmed_after_uninstall() -> None:
    pool = ft.pool(decay=None)
    ft.install(pool)
    del_me = np.ones(8 * MIB, np.uint8)
    ft.uninstall()
    del del_me
    assert ft.trim(pool) >= 8 * MIB
    assert ft.stats(pool).idle == 0
