"""Two-dimensional turbulence by a pseudo-spectral method, with fourth-order Runge-Kutta steps."""

import numpy as np
import numpy.typing as npt

Real = npt.NDArray[np.float64]
Complex = npt.NDArray[np.complex128]

POINTS, STEPS, TIME_STEP, VISCOSITY = 512, 40, 2e-3, 1e-4

KX = np.fft.fftfreq(POINTS, 1.0 / POINTS)[:, None] * np.ones(POINTS // 2 + 1)
KY = np.arange(POINTS // 2 + 1)[None, :] * np.ones((POINTS, 1))
SQUARE = KX**2 + KY**2
INVERSE = 1.0 / np.where(SQUARE == 0, 1.0, SQUARE)
KEPT = (np.abs(KX) < POINTS / 3) & (np.abs(KY) < POINTS / 3)


def tendency(w: Complex) -> Complex:
    """Return the rate of change of the vorticity: dealiased advection, and diffusion."""
    stream = w * INVERSE
    u, v = np.fft.irfft2(1j * KY * stream), np.fft.irfft2(-1j * KX * stream)
    wx, wy = np.fft.irfft2(1j * KX * w), np.fft.irfft2(1j * KY * w)
    return np.asarray(-np.fft.rfft2(u * wx + v * wy) * KEPT - VISCOSITY * SQUARE * w)


def run() -> float:
    """Forty steps."""
    random = np.random.default_rng(2)
    noise = np.fft.rfft2(random.standard_normal((POINTS, POINTS)))
    w = noise * np.exp(-(((np.sqrt(SQUARE) - 12.0) / 4.0) ** 2)) * KEPT
    for _ in range(STEPS):
        k1 = tendency(w)
        k2 = tendency(w + 0.5 * TIME_STEP * k1)
        k3 = tendency(w + 0.5 * TIME_STEP * k2)
        k4 = tendency(w + TIME_STEP * k3)
        w = w + TIME_STEP / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4)
    shell = np.sqrt(SQUARE).astype(np.intp).ravel()
    energy = np.bincount(shell, (np.abs(w) ** 2 * INVERSE).ravel())
    return float(np.log(energy[1:40]).sum())


if __name__ == "__main__":
    print(run())
