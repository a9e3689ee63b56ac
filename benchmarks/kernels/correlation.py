"""Correlation of every column of a table with every other, over a sliding choice of rows."""

import numpy as np


def run() -> float:
    """Correlate twelve tables of 12,000 rows and 40 columns."""
    data = np.random.default_rng(2).random((30_000, 40))
    total = 0.0
    for start in range(0, 18_000, 1_500):
        rows = data[start : start + 12_000]
        centred = rows - rows.mean(axis=0)
        scaled = centred / np.sqrt((centred**2).mean(axis=0))
        matrix = scaled.T @ scaled / len(rows)
        total += float(np.abs(matrix).sum())
    return total
