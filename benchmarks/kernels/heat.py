"""Heat diffusion in a block, with a new array at each step."""

import numpy as np


def run() -> float:
    """Run ten steps on 100 by 100 by 100 cells."""
    block = np.zeros((100, 100, 100))
    block[40:60, 40:60, 40:60] = 100.0
    for _ in range(10):
        inner = block[1:-1, 1:-1, 1:-1]
        change = block[2:, 1:-1, 1:-1] - 2.0 * inner + block[:-2, 1:-1, 1:-1]
        change = change + (block[1:-1, 2:, 1:-1] - 2.0 * inner + block[1:-1, :-2, 1:-1])
        change = change + (block[1:-1, 1:-1, 2:] - 2.0 * inner + block[1:-1, 1:-1, :-2])
        following = block.copy()
        following[1:-1, 1:-1, 1:-1] = inner + 0.1 * change
        block = following
    return float(block.std() + block.max())
