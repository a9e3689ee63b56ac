"""Two substances that react and diffuse until patterns form."""

import numpy as np
import numpy.typing as npt

Field = npt.NDArray[np.float64]


def laplacian(field: Field) -> Field:
    """Return the five-point Laplacian on a torus."""
    around = np.roll(field, 1, 0) + np.roll(field, -1, 0) + np.roll(field, 1, 1) + np.roll(field, -1, 1)
    return around - 4.0 * field


def run() -> float:
    """Run sixty steps on 300 by 300 cells."""
    u, v = np.ones((300, 300)), np.zeros((300, 300))
    u[120:180, 120:180], v[120:180, 120:180] = 0.5, 0.25
    for _ in range(60):
        reaction = u * v * v
        u = u + 0.16 * laplacian(u) - reaction + 0.035 * (1.0 - u)
        v = v + 0.08 * laplacian(v) + reaction - 0.1 * v
    return float(u.mean() + v.sum())
