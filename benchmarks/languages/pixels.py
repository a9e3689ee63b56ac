"""Restores pictures with NumPy: the same loop as C's, for whom arrays come from malloc."""

import os
import time

import numpy as np


def work() -> float:
    """Return the sum over all restored pictures."""
    total = 0.0
    for turn in range(6):
        side = 700 + 60 * (turn % 4)
        picture = (np.arange(side * side, dtype=float) * 7919 % 256).reshape(side, side) / 256
        for _ in range(12):
            up, left = np.roll(picture, 1, 0), np.roll(picture, 1, 1)
            change = (up - picture) ** 2 + (left - picture) ** 2
            weight = 1 / (1 + 4 * change)
            picture = picture + 0.1 * (weight * (up - picture) + weight * (left - picture))
        total += float(picture.sum())
    return total


print(f"{work():.6f}")
if os.environ.get("REST"):
    time.sleep(2)
    with open("/proc/self/statm") as file:
        print(int(file.read().split()[1]) * 4)
