"""Samples of a function of two variables on a fine grid, built once and interpolated at random places."""

import numpy as np


def run() -> float:
    """Return the mean of the interpolated values."""
    steps = 6000
    x = np.linspace(0, 4, steps)
    table = np.exp(-0.3 * x[:, None]) * np.cos(x)
    table = np.hypot(table, 0.1)
    random = np.random.default_rng(17)
    i, j = random.integers(0, steps - 1, size=(2, 1_500_000))
    u, v = random.random((2, len(i)))
    low = table[i, j] * (1 - v) + table[i, j + 1] * v
    high = table[i + 1, j] * (1 - v) + table[i + 1, j + 1] * v
    return float((low * (1 - u) + high * u).mean())


if __name__ == "__main__":
    print(run())
