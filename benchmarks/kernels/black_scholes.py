"""Prices of European options by the formula of Black and Scholes."""

import numpy as np
import numpy.typing as npt


def normal(x: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Return the normal distribution by a polynomial, because NumPy has no error function."""
    t = 1.0 / (1.0 + 0.2316419 * np.abs(x))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi) * series
    return np.asarray(np.where(x > 0.0, 1.0 - tail, tail))


def run() -> float:
    """Price five markets of 200,000 options."""
    random = np.random.default_rng(1)
    total = 0.0
    for rate in (0.0, 0.01, 0.02, 0.03, 0.04):
        spot, strike = random.uniform(10.0, 50.0, (2, 200_000))
        years, swing = random.uniform(0.5, 2.0, 200_000), random.uniform(0.1, 0.5, 200_000)
        spread = swing * np.sqrt(years)
        d1 = (np.log(spot / strike) + (rate + 0.5 * swing * swing) * years) / spread
        discounted = strike * np.exp(-rate * years)
        call = spot * normal(d1) - discounted * normal(d1 - spread)
        put = call - spot + discounted
        total += float(call.mean() + put.mean())
    return total
