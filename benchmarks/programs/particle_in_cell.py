"""A plasma of electrons by the particle-in-cell method; a beam adds electrons, and the walls absorb some."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

CELLS, PARTICLES, STEPS, TIME_STEP = 256, 200_000, 40, 0.1


def deposit(x: Array, y: Array) -> Array:
    """Return the charge density, each particle shared among four cells."""
    i, j = np.floor(x).astype(np.intp), np.floor(y).astype(np.intp)
    p, q = x - i, y - j
    density = np.zeros(CELLS * CELLS)
    for right, wx in ((0, 1.0 - p), (1, p)):
        for above, wy in ((0, 1.0 - q), (1, q)):
            cell = (i + right) % CELLS * CELLS + (j + above) % CELLS
            density += np.bincount(cell, wx * wy, CELLS * CELLS)
    return density.reshape(CELLS, CELLS)


def field(density: Array) -> tuple[Array, Array]:
    """Return the electric field of a charge density, by Fourier transform."""
    k = 2.0 * np.pi * np.fft.fftfreq(CELLS)
    kx, ky = np.meshgrid(k, k, indexing="ij")
    square = kx**2 + ky**2
    square[0, 0] = 1.0
    potential = np.fft.fft2(density - density.mean()) / square
    return np.fft.ifft2(-1j * kx * potential).real, np.fft.ifft2(-1j * ky * potential).real


def run() -> float:
    """Forty steps."""
    random = np.random.default_rng(1)
    x, y = random.uniform(0, CELLS, PARTICLES), random.uniform(0, CELLS, PARTICLES)
    u, v = random.normal(0, 1, PARTICLES), random.normal(0, 1, PARTICLES)
    energy: list[float] = []
    for step in range(STEPS):
        ex, ey = field(deposit(x, y))
        cell = (np.floor(x).astype(np.intp), np.floor(y).astype(np.intp))
        u, v = u - TIME_STEP * ex[cell], v - TIME_STEP * ey[cell]
        x, y = x + TIME_STEP * u, (y + TIME_STEP * v) % CELLS
        inside = (x >= 0) & (x < CELLS)
        x, y, u, v = x[inside], y[inside], u[inside], v[inside]
        beam = int(random.integers(500, 9_000))
        x = np.concatenate([x, random.uniform(0, 1, beam)])
        y = np.concatenate([y, random.uniform(CELLS / 2 - 8, CELLS / 2 + 8, beam)])
        u = np.concatenate([u, random.normal(6, 0.5, beam)])
        v = np.concatenate([v, random.normal(0, 0.5, beam)])
        energy.append(float(0.5 * (u * u + v * v).sum()))
        if step % 10 == 9:  # sort the particles by cell
            order = np.argsort(np.floor(x) * CELLS + np.floor(y), kind="stable")
            x, y, u, v = x[order], y[order], u[order], v[order]
    return energy[-1] / len(x)


if __name__ == "__main__":
    print(run())
