"""Predators and prey: scipy's `solve_ivp` on the Lotka-Volterra equations, over a grid of parameters."""

import sys

import numpy as np
from scipy.integrate import solve_ivp


def lotka_volterra(t, z, a, b, c, d):
    """Return the growth of the prey and of the predators."""
    x, y = z
    return [a * x - b * x * y, -c * y + d * x * y]


def period(a, c):
    """Return the time between two maxima of the prey."""

    def growth(t, z, *_):
        return a - z[1]

    growth.direction = -1
    solution = solve_ivp(lotka_volterra, (0, 40), [2, 1], args=(a, 1, c, 1), events=growth, rtol=1e-6)
    return np.diff(solution.t_events[0]).mean()


size = int(sys.argv[1]) if len(sys.argv) > 1 else 7
rates = np.linspace(1.0, 3.0, size)
periods = np.array([[period(a, c) for c in rates] for a in rates])
print(f"{periods.size} solutions; the period is {periods.min():.3f} to {periods.max():.3f}")
