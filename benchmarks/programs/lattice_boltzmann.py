"""Flow past a cylinder by the lattice Boltzmann method: nine distributions on a grid of 600 by 240."""

import sys

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

WIDTH, HEIGHT, STEPS = 600, 240, 60
VELOCITIES = np.array([(x, y) for x in (0, -1, 1) for y in (0, -1, 1)])
WEIGHTS = np.array([(4 / 9, 1 / 9, 1 / 36)[abs(x) + abs(y)] for x, y in VELOCITIES])
OPPOSITE = [VELOCITIES.tolist().index([-x, -y]) for x, y in VELOCITIES]
SPEED, REYNOLDS, RADIUS = 0.04, 220.0, HEIGHT / 9
OMEGA = 1.0 / (3.0 * SPEED * RADIUS / REYNOLDS + 0.5)


def equilibrium(density: Array, velocity: Array) -> Array:
    """Return the distributions that collisions relax towards."""
    along = 3.0 * np.einsum("id,dxy->ixy", VELOCITIES, velocity)
    square = 1.5 * (velocity[0] ** 2 + velocity[1] ** 2)
    return np.asarray(density * WEIGHTS[:, None, None] * (1.0 + along + 0.5 * along**2 - square))


def run(steps: int = STEPS) -> float:
    """Return the mean speed after some steps."""
    x, y = np.indices((WIDTH, HEIGHT))
    obstacle = (x - WIDTH / 4) ** 2 + (y - HEIGHT / 2) ** 2 < RADIUS**2
    inflow = np.zeros((2, WIDTH, HEIGHT))
    inflow[0] = SPEED * (1.0 + 1e-4 * np.sin(y / HEIGHT * 2.0 * np.pi))
    incoming = equilibrium(np.ones((WIDTH, HEIGHT)), inflow)
    current, velocity = incoming, inflow
    for _ in range(steps):
        density = sum(current[i] for i in range(9))
        velocity = np.einsum("id,ixy->dxy", VELOCITIES, current) / density
        velocity[:, 0, :] = inflow[:, 0, :]
        collided = current - OMEGA * (current - equilibrium(np.asarray(density), velocity))
        for i in range(9):
            collided[i, obstacle] = current[OPPOSITE[i], obstacle]
        current = np.stack([np.roll(collided[i], VELOCITIES[i], axis=(0, 1)) for i in range(9)])
        current[:, 0, :] = incoming[:, 0, :]
    return float(np.sqrt((velocity**2).sum(axis=0)).mean())


if __name__ == "__main__":
    print(run(*map(int, sys.argv[1:])))
