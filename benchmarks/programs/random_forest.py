"""A random forest grown on samples of different sizes; each node sorts fewer rows than the one above it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

ROWS, FEATURES, TREES, DEPTH = 60_000, 24, 10, 9


@dataclass
class Node:
    """A leaf, or a condition and the nodes of both outcomes."""

    value: float
    feature: int = -1
    threshold: float = 0.0
    below: Node | None = None
    above: Node | None = None


def best_split(x: Array, y: Array) -> tuple[float, int, float]:
    """Return the loss, the feature and the threshold of the best split."""
    order = np.argsort(x, axis=0)
    sorted_x, sorted_y = np.take_along_axis(x, order, axis=0), y[order]
    left = np.cumsum(sorted_y, axis=0)[:-1]
    count = np.arange(1, len(y))[:, None]
    right = y.sum() - left
    gain = left**2 / count + right**2 / (len(y) - count)
    gain[sorted_x[1:] == sorted_x[:-1]] = -np.inf
    row, feature = np.unravel_index(int(np.argmax(gain)), gain.shape)
    threshold = 0.5 * (sorted_x[row, feature] + sorted_x[row + 1, feature])
    return float(gain[row, feature]), int(feature), float(threshold)


def grow(x: Array, y: Array, depth: int, random: np.random.Generator) -> Node:
    """Grow a tree for some rows."""
    node = Node(float(y.mean()))
    if depth == 0 or len(y) < 40:
        return node
    candidates = random.choice(FEATURES, 8, replace=False)
    gain, feature, threshold = best_split(x[:, candidates], y)
    below = x[:, candidates[feature]] <= threshold
    if gain <= y.sum() ** 2 / len(y) or below.all():
        return node
    node.feature, node.threshold = int(candidates[feature]), threshold
    node.below = grow(x[below], y[below], depth - 1, random)
    node.above = grow(x[~below], y[~below], depth - 1, random)
    return node


def predict(node: Node, x: Array) -> Array:
    """Return the values of the leaves that the rows reach."""
    if node.below is None or node.above is None:
        return np.full(len(x), node.value)
    result = np.empty(len(x))
    below = x[:, node.feature] <= node.threshold
    result[below], result[~below] = predict(node.below, x[below]), predict(node.above, x[~below])
    return result


def run() -> float:
    """Return the forest's error on unseen rows."""
    random = np.random.default_rng(6)
    x = random.normal(size=(ROWS, FEATURES))
    y = np.sin(2 * x[:, 0]) + x[:, 1] * (x[:, 2] > 0) + 0.3 * x[:, 3] ** 2 + random.normal(0, 0.2, ROWS)
    held_out, prediction = x[:10_000], np.zeros(10_000)
    for _ in range(TREES):
        size = int(random.integers(ROWS // 8, ROWS))
        rows = random.integers(10_000, ROWS, size)
        prediction += predict(grow(x[rows], y[rows], DEPTH, random), held_out)
    return float(np.sqrt(np.mean((prediction / TREES - y[:10_000]) ** 2)))


if __name__ == "__main__":
    print(run())
