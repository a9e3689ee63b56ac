"""K-means clustering."""

import numpy as np


def run() -> float:
    """Run eight iterations with 60,000 points in three dimensions and 16 clusters."""
    random = np.random.default_rng(7)
    points = random.random((60_000, 3)) + random.integers(0, 3, (60_000, 1))
    centres = points[:16].copy()
    inertia = 0.0
    for _ in range(8):
        squares = (points**2).sum(axis=1)[:, None] - 2.0 * points @ centres.T + (centres**2).sum(axis=1)
        nearest = squares.argmin(axis=1)
        inertia = float(np.sqrt(np.maximum(squares.min(axis=1), 0.0)).sum())
        counts = np.maximum(np.bincount(nearest, minlength=16), 1)
        sums = [np.bincount(nearest, points[:, axis], 16) / counts for axis in range(3)]
        centres = np.stack(sums, axis=1)
    return inertia
