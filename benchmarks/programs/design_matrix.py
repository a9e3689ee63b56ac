"""A design matrix of polynomial and indicator columns, filled once, and the normal equations of a regression."""

import numpy as np


def run() -> float:
    """Return the norm of the coefficients."""
    random = np.random.default_rng(13)
    rows, groups = 700_000, 40
    x = random.uniform(-1, 1, rows)
    group = random.integers(0, groups, rows)
    design = np.zeros((rows, 16 + groups))
    for power in range(16):
        design[:, power] = x**power
    design[np.arange(rows), 16 + group] = 1
    observed = np.sin(3 * x) + group / groups + 0.1 * random.standard_normal(rows)
    normal = design.T @ design + 1e-6 * np.eye(design.shape[1])
    return float(np.linalg.norm(np.linalg.solve(normal, design.T @ observed)))


if __name__ == "__main__":
    print(run())
