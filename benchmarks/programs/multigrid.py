"""Poisson's equation by full multigrid: every step uses arrays of another size."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

LEVELS = 10


def smooth(u: Array, f: Array, h: float, sweeps: int) -> Array:
    """Do weighted Jacobi sweeps."""
    for _ in range(sweeps):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        new = u.copy()
        new[1:-1, 1:-1] = u[1:-1, 1:-1] + 0.8 * (0.25 * (around + h * h * f[1:-1, 1:-1]) - u[1:-1, 1:-1])
        u = new
    return u


def residual(u: Array, f: Array, h: float) -> Array:
    """Return the residual of the equation."""
    r = np.zeros_like(u)
    laplacian = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * u[1:-1, 1:-1]
    r[1:-1, 1:-1] = f[1:-1, 1:-1] + laplacian / (h * h)
    return r


def coarser(r: Array) -> Array:
    """Restrict to the next coarser grid by full weighting."""
    c = np.zeros((len(r) // 2 + 1, len(r) // 2 + 1))
    sides = r[1:-3:2, 2:-2:2] + r[3:-1:2, 2:-2:2] + r[2:-2:2, 1:-3:2] + r[2:-2:2, 3:-1:2]
    corners = r[1:-3:2, 1:-3:2] + r[1:-3:2, 3:-1:2] + r[3:-1:2, 1:-3:2] + r[3:-1:2, 3:-1:2]
    c[1:-1, 1:-1] = r[2:-2:2, 2:-2:2] / 4.0 + sides / 8.0 + corners / 16.0
    return c


def finer(c: Array) -> Array:
    """Interpolate bilinearly to the next finer grid."""
    n = 2 * len(c) - 1
    fine = np.zeros((n, n))
    fine[::2, ::2] = c
    fine[1::2, ::2] = 0.5 * (c[:-1] + c[1:])
    fine[:, 1::2] = 0.5 * (fine[:, :-2:2] + fine[:, 2::2])
    return fine


def cycle(u: Array, f: Array) -> Array:
    """One V-cycle."""
    h = 1.0 / (len(u) - 1)
    if len(u) <= 3:
        return smooth(u, f, h, 20)
    u = smooth(u, f, h, 2)
    r = coarser(residual(u, f, h))
    u = u + finer(cycle(np.zeros_like(r), r))
    return smooth(u, f, h, 2)


def run() -> float:
    """Run full multigrid with two V-cycles per level, then eight more on the finest."""
    total = 0.0
    u = np.zeros((3, 3))
    for level in range(1, LEVELS + 1):
        n = 2**level + 1
        x, y = np.meshgrid(np.linspace(0, 1, n), np.linspace(0, 1, n), indexing="ij")
        f = np.sin(3 * np.pi * x) * np.exp(y) + np.cos(5 * x * y)
        u = finer(u) if level > 1 else u
        for _ in range(2 if level < LEVELS else 10):
            u = cycle(u, f)
        total += float(np.abs(residual(u, f, 1.0 / (n - 1))).mean())
    return total + float(u.sum())


if __name__ == "__main__":
    print(run())
