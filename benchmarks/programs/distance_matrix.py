"""The distances between all pairs of points, kept as a matrix, and the nearest neighbours of each."""

import numpy as np


def run() -> float:
    """Return the mean distance to the fifth neighbour, and that within the matrix."""
    points = np.random.default_rng(5).normal(size=(5500, 3))
    squares = (points * points).sum(axis=1)
    distances = np.empty((len(points), len(points)))
    for start in range(0, len(points), 500):
        rows = slice(start, start + 500)
        product = points[rows] @ points.T
        distances[rows] = np.sqrt(np.maximum(squares[rows, None] + squares - 2 * product, 0))
    fifth = np.partition(distances[:1500], 5, axis=1)[:, 5]
    return float(fifth.mean() + distances.mean())


if __name__ == "__main__":
    print(run())
