"""Points in a k-d tree: statistics of every node, and neighbours counted within each leaf."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

POINTS, LEAF = 300_000, 60


def statistics(points: Array) -> Array:
    """Return the mean, spread and quartiles of a node."""
    centred = points - points.mean(axis=0)
    spread = np.linalg.eigvalsh(centred.T @ centred / len(points))
    distances = np.sqrt((centred**2).sum(axis=1))
    return np.concatenate([spread, np.quantile(distances, [0.25, 0.5, 0.75])])


def close_pairs(points: Array, radius: float) -> int:
    """Count pairs of points of a leaf that are closer than `radius`."""
    square = ((points[:, None, :] - points[None, :, :]) ** 2).sum(axis=2)
    return (int((square < radius * radius).sum()) - len(points)) // 2


def descend(points: Array, depth: int, found: list[Array]) -> int:
    """Split at the widest axis, unevenly, down to the leaves; return the number of close pairs in all leaves."""
    found.append(statistics(points))
    if len(points) <= LEAF:
        return close_pairs(points, 0.02)
    axis = int(np.argmax(np.ptp(points, axis=0)))
    values = points[:, axis]
    at = 0.5 * (np.median(values) + values.mean())
    below = values < at
    if not below.any() or below.all():
        return close_pairs(points[:LEAF], 0.02)
    return descend(points[below], depth + 1, found) + descend(points[~below], depth + 1, found)


def run() -> float:
    """Process clusters of different sizes and densities."""
    random = np.random.default_rng(4)
    sizes = random.multinomial(POINTS, random.dirichlet(np.ones(40)))
    clusters = [random.normal(random.uniform(0, 10, 3), random.uniform(0.05, 1), (size, 3)) for size in sizes]
    found: list[Array] = []
    pairs = descend(np.concatenate(clusters), 0, found)
    return pairs + float(np.vstack(found).mean())


if __name__ == "__main__":
    print(run())
