"""Heat flow on a grid of 1,000 x 1,000 points."""

import numpy as np

u = np.zeros((1000, 1000))
u[500, 500] = 1e6
for _ in range(100):
    around = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1)
    u = u + 0.1 * (around - 4 * u)
print(f"{u.sum():.1f}")
