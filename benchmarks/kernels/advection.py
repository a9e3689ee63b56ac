"""Upwind transport of a hill around a periodic square."""

import numpy as np


def run() -> float:
    """Run sixty steps on 400 by 400 cells."""
    axis = np.linspace(0.0, 1.0, 400, endpoint=False)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    density = np.exp(-50.0 * ((x - 0.5) ** 2 + (y - 0.5) ** 2))
    u, v = 0.6 + 0.2 * np.sin(2 * np.pi * y), 0.4 + 0.1 * np.cos(2 * np.pi * x)
    for _ in range(60):
        flux_x = u * density
        flux_y = v * density
        density = density - 0.5 * (flux_x - np.roll(flux_x, 1, 0)) - 0.5 * (flux_y - np.roll(flux_y, 1, 1))
    return float(density.max() + density.mean())
