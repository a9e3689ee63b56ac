"""Columns that arrive in parts, joined into one table each, and summarised by group."""

import numpy as np
import numpy.typing as npt

Column = npt.NDArray[np.float64]


def part(random: np.random.Generator, rows: int) -> dict[str, Column]:
    """Return the next rows, as a reader would."""
    time = np.cumsum(random.random(rows))
    return {"time": time, "price": 100 + np.sin(time / 50), "volume": np.floor(1 + 9 * random.random(rows))}


def run() -> float:
    """Return the turnover of the busiest group."""
    random = np.random.default_rng(7)
    parts = [part(random, 250_000 + 10_000 * i) for i in range(24)]
    table = {name: np.concatenate([each[name] for each in parts]) for name in parts[0]}
    groups = (table["time"] / 3600).astype(np.intp)
    turnover = np.bincount(groups, weights=table["price"] * table["volume"])
    return float(turnover.max())


if __name__ == "__main__":
    print(run())
