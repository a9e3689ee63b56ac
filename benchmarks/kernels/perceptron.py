"""Forward and backward passes of batches through a small network."""

import numpy as np


def run() -> float:
    """Train on twelve batches of 3,000 samples, with one hidden layer of 128."""
    random = np.random.default_rng(9)
    first, second = 0.1 * random.normal(size=(64, 128)), 0.1 * random.normal(size=(128, 10))
    loss = 0.0
    for _ in range(12):
        samples, labels = random.normal(size=(3000, 64)), random.integers(0, 10, 3000)
        hidden = np.tanh(samples @ first)
        scores = hidden @ second
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances = chances / chances.sum(axis=1, keepdims=True)
        loss = float(-np.log(chances[np.arange(3000), labels]).mean())
        error = (chances - np.eye(10)[labels]) / 3000.0
        back = (error @ second.T) * (1.0 - hidden**2)
        first, second = first - 0.5 * samples.T @ back, second - 0.5 * hidden.T @ error
    return loss
