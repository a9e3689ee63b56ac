"""A climate-like cube on a Dask cluster, with NumPy's own memory and with ArrayMemory.

The example creates the cube, a temperature for each day, latitude and longitude, and counts hot days: those that are
warmer than the mean of their day of the year by two standard deviations of that day.
"""

import argparse
import time
from statistics import median

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from firsttouch.dask import ArrayMemory

DAYS = 365


def temperatures(years: int, cells: int) -> da.Array:
    """Return seasons, latitudes and noise: ``years * 365`` days of ``cells / 2`` latitudes and ``cells`` longitudes."""
    shape, chunks = (years * DAYS, cells // 2, cells), (DAYS, max(1, cells // 8), max(1, cells // 4))
    day = 2 * np.pi * da.arange(shape[0], chunks=chunks[0])[:, None, None] / DAYS
    latitude = da.linspace(-1.0, 1.0, shape[1], chunks=chunks[1])[None, :, None]
    noise = da.random.default_rng(0).standard_normal(shape, chunks=chunks)
    return 288.0 - 30.0 * latitude**2 - 15.0 * latitude * da.cos(day) + 4.0 * noise


def hot_days(cube: da.Array) -> da.Array:
    """Return the fraction of days that are two standard deviations warmer than the mean of their day of the year."""
    years = cube.reshape(-1, DAYS, *cube.shape[1:])
    mean, deviation = years.mean(axis=0), years.std(axis=0)
    return ((years - mean) / deviation > 2.0).mean(axis=(0, 1))


def seconds(client: Client, cube: da.Array, rounds: int) -> tuple[float, float]:
    """Return the median time of a round, and the fraction of hot days in all cells."""
    times, part = [], 0.0
    for _ in range(rounds):
        start = time.perf_counter()
        part = float(client.compute(hot_days(cube).mean()).result())
        times.append(time.perf_counter() - start)
    return median(times), part


def main() -> None:
    """Time both ways on the same cluster, with the same cube."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("--years", 10), ("--cells", 180), ("--rounds", 3), ("--workers", 1), ("--threads", 2)):
        parser.add_argument(name, type=int, default=default)
    given = parser.parse_args()

    local = {"n_workers": given.workers, "threads_per_worker": given.threads, "dashboard_address": ":0"}
    with LocalCluster(**local) as cluster, Client(cluster) as client:
        cube = client.persist(temperatures(given.years, given.cells))
        seconds(client, cube, 1)  # excludes what happens only once
        plain, part = seconds(client, cube, given.rounds)
        client.register_plugin(ArrayMemory())
        seconds(client, cube, 1)
        pooled, again = seconds(client, cube, given.rounds)

    print(f"{' x '.join(map(str, cube.shape))} days and cells, {cube.nbytes / 2**20:.0f} MiB, seconds per round:")
    print(f"  NumPy's own memory: {plain:.3f}")
    print(f"         ArrayMemory: {pooled:.3f}")
    print(f"the same hot days, {part:.1%}:", part == again)


if __name__ == "__main__":
    main()
