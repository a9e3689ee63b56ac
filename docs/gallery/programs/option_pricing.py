"""Monte Carlo pricing of Asian options in the Heston model, all paths at once, step by step."""

import sys

import numpy as np

SPOT, RATE, YEARS, STEPS = 100.0, 0.03, 1.0, 100
VARIANCE, MEAN_VARIANCE, REVERSION, VOLATILITY, CORRELATION = 0.04, 0.05, 1.5, 0.4, -0.7


def simulate(paths, random):
    """Return the average price along each path, and the last one."""
    dt = YEARS / STEPS
    price = np.full(paths, SPOT)
    variance = np.full(paths, VARIANCE)
    total = np.zeros(paths)
    for _ in range(STEPS):
        dw = random.standard_normal(paths)
        dv = CORRELATION * dw + np.sqrt(1 - CORRELATION**2) * random.standard_normal(paths)
        positive = np.maximum(variance, 0)
        price = price * np.exp((RATE - 0.5 * positive) * dt + np.sqrt(positive * dt) * dw)
        variance = variance + REVERSION * (MEAN_VARIANCE - positive) * dt + VOLATILITY * np.sqrt(positive * dt) * dv
        total = total + price
    return total / STEPS, price


def value(payoff):
    """Return the price of an option, and its standard error."""
    discounted = np.exp(-RATE * YEARS) * payoff
    return discounted.mean(), discounted.std() / np.sqrt(len(payoff))


paths = int(sys.argv[1]) if len(sys.argv) > 1 else 500_000
average, last = simulate(paths, np.random.default_rng(42))
for strike in (90, 100, 110):
    asian, european = value(np.maximum(average - strike, 0)), value(np.maximum(last - strike, 0))
    print(f"strike {strike}: Asian {asian[0]:.3f} +- {asian[1]:.3f}, European {european[0]:.3f} +- {european[1]:.3f}")
