"""The Mandelbrot set, the whole plane in each iteration."""

import numpy as np
import numpy.typing as npt


def run() -> float:
    """Run twenty-five iterations on 400 by 500 points."""
    x, y = np.linspace(-2.2, 0.8, 500), np.linspace(-1.2, 1.2, 400)
    c = x + 1j * y[:, None]
    z: npt.NDArray[np.complex128] = np.zeros(c.shape, np.complex128)
    turns = np.zeros(c.shape, np.int64)
    for _ in range(25):
        inside = z.real**2 + z.imag**2 < 4.0
        z = np.where(inside, z * z + c, z)
        turns = turns + inside
    return float(turns.sum())
