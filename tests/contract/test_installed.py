"""The whole process on each allocator that can be installed, one after the other, while old arrays stay live."""

import numpy as np
import pytest

import firsttouch as ft
from tests.contract.stacks import INSTALLED, STACKS, make
from tests.probe import MIB, fill, intact

SIZES = (1, 1000, 20_000, MIB, 5 * MIB)


def some(seed: int) -> list[np.ndarray[tuple[int], np.dtype[np.uint8]]]:
    arrays = [np.empty(size, np.uint8) for size in SIZES]
    for array in arrays:
        fill(array, seed)
    return arrays


def test_they_take_turns() -> None:
    kept = {"": some(0)}
    for seed, stack in enumerate(INSTALLED, 1):
        allocator = make(stack)
        ft.install(allocator)
        kept[stack] = some(seed)
        assert ft.get_allocator(kept[stack][-1]) == allocator
    for seed, arrays in enumerate(kept.values()):
        for array in arrays:
            assert intact(array, seed)
            array.resize(array.size * 2, refcheck=False)
            assert intact(array, seed, array.size // 2)


@pytest.mark.parametrize("stack", STACKS)
def test_in_a_block(stack: str) -> None:
    allocator = make(stack)
    with ft.use(allocator):
        x = np.ones(300_000)
        for _ in range(20):
            x = x * 0.5 + 1
        y = np.concatenate([x, x])
    assert ft.get_allocator(y) == allocator
    assert (y == x[0]).all()
