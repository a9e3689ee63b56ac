"""Great-circle distances between towns and their nearest stations."""

import numpy as np


def run() -> float:
    """Compute the distances of 2,500 towns and 400 stations."""
    random = np.random.default_rng(5)
    towns, stations = (np.radians(random.uniform(-60.0, 60.0, (count, 2))) for count in (2500, 400))
    total = 0.0
    for part in np.array_split(towns, 5):
        latitude, longitude = part[:, :1], part[:, 1:]
        north, east = stations[:, 0] - latitude, stations[:, 1] - longitude
        half = np.sin(north / 2.0) ** 2 + np.cos(latitude) * np.cos(stations[:, 0]) * np.sin(east / 2.0) ** 2
        kilometres = 2.0 * 6371.0 * np.arcsin(np.sqrt(half))
        total += float(kilometres.min(axis=1).sum())
    return total
