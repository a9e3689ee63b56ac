"""Bodies that attract each other, all pairs at once."""

import numpy as np
import numpy.typing as npt


def run() -> float:
    """Run twelve steps of 450 bodies."""
    random = np.random.default_rng(8)
    place, speed = random.normal(size=(450, 3)), 0.1 * random.normal(size=(450, 3))
    mass: npt.NDArray[np.float64] = random.random(450) / 450.0
    for _ in range(12):
        x, y, z = (axis[None, :] - axis[:, None] for axis in place.T)
        inverse = (x**2 + y**2 + z**2 + 0.01) ** -1.5
        pull = np.stack([(away * inverse) @ mass for away in (x, y, z)], axis=1)
        speed = speed + 0.01 * pull
        place = place + 0.01 * speed
    return float(0.5 * (mass[:, None] * speed**2).sum() + np.abs(place).max())
