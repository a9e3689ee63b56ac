"""Programs of the kinds that people have at hand, a second or less each: `advise` is compared with what they gain."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]


def _heat(points: int, steps: int) -> None:
    u = np.zeros((points, points))
    u[points // 2, points // 2] = 1e6
    for _ in range(steps):
        around = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1)
        u = u + 0.1 * (around - 4 * u)


def rolled_500() -> None:
    """Let heat flow on arrays of 2 MB, shifted by np.roll."""
    _heat(500, 120)


def rolled_1000() -> None:
    """Do the same on arrays of 8 MB."""
    _heat(1000, 30)


def rolled_2100() -> None:
    """Do the same on arrays of 35 MB, which glibc maps one by one."""
    _heat(2100, 8)


def bodies() -> None:
    """Move bodies that attract each other, by differences of all pairs."""
    random = np.random.default_rng(1)
    place, speed = random.normal(size=(600, 3)), np.zeros((600, 3))
    for _ in range(12):
        away = place[None, :, :] - place[:, None, :]
        distance = np.sqrt((away**2).sum(axis=2) + 0.01)
        speed = speed + 0.01 * (away / distance[:, :, None] ** 3).sum(axis=1)
        place = place + 0.01 * speed


def spectra() -> None:
    """Filter pictures by FFT."""
    random = np.random.default_rng(2)
    picture = random.random((768, 768))
    window = np.hanning(768)[:, None] * np.hanning(768)
    for _ in range(8):
        spectrum = np.fft.fft2(picture) * window
        picture = np.abs(np.fft.ifft2(spectrum)) + 0.01 * picture


def filters() -> None:
    """Blur and sharpen by scipy.ndimage."""
    from scipy import ndimage

    picture = np.random.default_rng(3).random((1200, 1200))
    for _ in range(4):
        blurred = ndimage.gaussian_filter(picture, 1.0)
        picture = picture + 0.5 * (picture - blurred)
        picture = np.clip(ndimage.uniform_filter(picture, 3), 0.0, 1.0)


def tables() -> None:
    """Filter, join and group tables by pandas."""
    import pandas as pd

    random = np.random.default_rng(4)
    count = 600_000
    sales = pd.DataFrame({"shop": random.integers(0, 800, count), "price": random.random(count), "n": 1.0})
    shops = pd.DataFrame({"shop": np.arange(800), "region": random.integers(0, 12, 800)})
    for _ in range(3):
        kept = sales[sales["price"] > 0.2].copy()
        kept["revenue"] = kept["price"] * kept["n"] * 1.19
        kept.merge(shops, on="shop").groupby("region")["revenue"].agg(["sum", "mean"])


def monte_carlo() -> None:
    """Estimate pi in batches whose arrays are 80 kB."""
    random = np.random.default_rng(5)
    inside = 0
    for _ in range(1500):
        x, y = random.random(10_000), random.random(10_000)
        inside += int(np.count_nonzero(x * x + y * y < 1.0))


def products() -> None:
    """Multiply matrices."""
    matrix = np.random.default_rng(6).random((900, 900))
    for _ in range(6):
        matrix = matrix @ matrix
        matrix = matrix / matrix.max()


def built_and_kept() -> None:
    """Build arrays of 1 MiB and keep them all."""
    kept = [np.full(1 << 17, float(number)) for number in range(500)]
    sum(float(array[-1]) for array in kept)


def tiny() -> None:
    """Compute with arrays of a hundred numbers."""
    a = np.arange(100.0)
    for _ in range(300_000):
        a = a * 0.999 + 0.001


def small_temporaries() -> None:
    """Compute with temporaries of 32 KiB, which plain NumPy reuses."""
    a = np.arange(4096.0)
    for _ in range(60_000):
        a = (a * 0.5 + 1.0) - a * 0.25


def through_ctypes() -> None:
    """Let a function of the C library work on arrays of 4 MB that NumPy makes."""
    import ctypes

    fill = ctypes.CDLL(None).memset
    for value in range(400):
        array = np.empty(500_000)
        fill(ctypes.c_void_p(array.ctypes.data), value % 128, array.nbytes)
        array.sum()


def text_tables() -> None:
    """Read numbers from text, and write them again."""
    import io

    random = np.random.default_rng(7)
    text = io.StringIO()
    np.savetxt(text, random.random((20_000, 5)))
    for _ in range(3):
        text.seek(0)
        np.loadtxt(text)


def statistics() -> None:
    """Standardize columns and compute correlations and quantiles."""
    random = np.random.default_rng(8)
    data = random.normal(size=(200_000, 12))
    for _ in range(6):
        z = (data - data.mean(axis=0)) / data.std(axis=0)
        np.quantile(np.abs(z), 0.99, axis=0)
        z.T @ z


def waves() -> None:
    """Integrate the wave equation on arrays of 5 MB with slices and temporaries."""
    u = np.zeros((800, 800))
    before = u.copy()
    u[400, 400] = 1.0
    for _ in range(60):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * u[1:-1, 1:-1]
        after = 2.0 * u - before
        after[1:-1, 1:-1] += 0.2 * around
        before, u = u, after


def trees() -> None:
    """Search nearest neighbours by scipy.spatial, and smooth over them."""
    from scipy.spatial import KDTree

    random = np.random.default_rng(9)
    points = random.random((60_000, 3))
    values = random.random(60_000)
    distances, nearest = KDTree(points).query(points, 8)
    for _ in range(20):
        weights = np.exp(-(distances**2) * 100.0)
        values = (values[nearest] * weights).sum(axis=1) / weights.sum(axis=1)


def batches() -> None:
    """Normalize and augment batches of images in float32, of 25 MB each."""
    random = np.random.default_rng(10)
    images = random.integers(0, 256, (32, 256, 256, 3), dtype=np.uint8)
    for _ in range(4):
        batch = images.astype(np.float32) / np.float32(255.0)
        batch = (batch - batch.mean(axis=(0, 1, 2))) / batch.std(axis=(0, 1, 2))
        batch = batch[:, ::-1] * np.float32(0.9) + np.float32(0.1)


def windows() -> None:
    """Compute moving averages and deviations of long series, in 3 MB."""
    series = np.random.default_rng(11).normal(size=400_000).cumsum()
    for width in range(10, 60):
        sums = np.cumsum(np.insert(series, 0, 0.0))
        mean = (sums[width:] - sums[:-width]) / width
        np.abs(series[width - 1 :] - mean).max()


def sorting() -> None:
    """Sort, order, distinct values and a histogram of two million numbers."""
    values = np.random.default_rng(2).random(2_000_000)
    order = np.argsort(values)
    values = values[order]
    np.unique(np.floor(values * 1000.0))
    np.histogram(values, 100)


def growing_lists() -> None:
    """Collect chunks in lists, join them, and collect again, as readers of files do."""
    random = np.random.default_rng(3)
    joined = np.zeros(0)
    for _ in range(8):
        chunks: list[Array] = [random.random(int(size)) for size in random.integers(5_000, 60_000, 60)]
        joined = np.concatenate([joined, *chunks])


def images() -> None:
    """Compute blur and edges of colour images, in float32."""
    random = np.random.default_rng(4)
    for _ in range(4):
        image = random.random((1080, 1440, 3), dtype=np.float32)
        grey = image @ np.array([0.3, 0.59, 0.11], np.float32)
        blurred = sum(np.roll(grey, shift, axis) for shift in (-1, 0, 1) for axis in (0, 1)) / np.float32(6)
        gy, gx = np.gradient(blurred)
        edges = np.sqrt(gx * gx + gy * gy)
        np.clip(edges * 255.0, 0, 255).astype(np.uint8)


def random_sizes() -> None:
    """Keep three hundred arrays of all sizes up to 2 MiB, replaced at random."""
    random = np.random.default_rng(5)
    living: list[Array] = [np.ones(1)] * 300
    sizes = np.exp(random.uniform(np.log(1 << 10), np.log(2 << 20), 6000)) / 8
    for slot, size in zip(random.integers(300, size=6000), sizes, strict=True):
        living[slot] = np.full(int(size), 1.0)


def many_arrays() -> None:
    """Keep 10,000 arrays of 33 to 127 KiB, each written."""
    sizes = np.random.default_rng(6).integers(33 << 10, 127 << 10, 10_000)
    living = [np.full(int(size), 1, np.uint8) for size in sizes]
    living.reverse()


def sparse_zeros() -> None:
    """Keep 1,000 arrays of 1 MiB, in each of which one element is written."""
    living = [np.zeros(1 << 17) for _ in range(1_000)]
    for array in living:
        array[len(array) // 2] = 1.0


def columns() -> None:
    """Filter, group and join columns, with temporaries of many lengths."""
    random = np.random.default_rng(7)
    for _ in range(6):
        key = random.integers(0, 500, 400_000)
        value = random.random(400_000)
        kept = value > random.random()
        sums = np.bincount(key[kept], value[kept], 500)
        joined = sums[key] - value
        np.column_stack([key, value, joined])[joined > 0]


def option_prices() -> None:
    """Price markets of 200,000 options by the formula of Black and Scholes."""
    random = np.random.default_rng(12)

    def normal(x: Array) -> Array:
        t = 1.0 / (1.0 + 0.2316419 * np.abs(x))  # a polynomial, because NumPy has no error function
        series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
        tail = np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi) * series
        where: Array = np.where(x > 0.0, 1.0 - tail, tail)
        return where

    for rate in (0.0, 0.01, 0.02, 0.03, 0.04):
        spot, strike = random.uniform(10.0, 50.0, (2, 200_000))
        years, swing = random.uniform(0.5, 2.0, 200_000), random.uniform(0.1, 0.5, 200_000)
        spread = swing * np.sqrt(years)
        d1 = (np.log(spot / strike) + (rate + 0.5 * swing * swing) * years) / spread
        spot * normal(d1) - strike * np.exp(-rate * years) * normal(d1 - spread)


def game_of_life() -> None:
    """Play Conway's game on a torus, in small integers and booleans."""
    alive = np.random.default_rng(13).random((1000, 1000)) < 0.3
    for _ in range(40):
        board = np.pad(alive.astype(np.int8), 1, mode="wrap")
        across = board[:, :-2] + board[:, 1:-1] + board[:, 2:]
        neighbours = across[:-2] + across[1:-1] + across[2:] - board[1:-1, 1:-1]
        alive = (neighbours == 3) | (alive & (neighbours == 2))


def reactions() -> None:
    """Let two substances react and diffuse until patterns form."""

    def laplacian(of: Array) -> Array:
        return np.roll(of, 1, 0) + np.roll(of, -1, 0) + np.roll(of, 1, 1) + np.roll(of, -1, 1) - 4.0 * of

    u, v = np.ones((300, 300)), np.zeros((300, 300))
    u[120:180, 120:180], v[120:180, 120:180] = 0.5, 0.25
    for _ in range(60):
        reaction = u * v * v
        u = u + 0.16 * laplacian(u) - reaction + 0.035 * (1.0 - u)
        v = v + 0.08 * laplacian(v) + reaction - 0.1 * v


def clusters() -> None:
    """Cluster points by k-means."""
    random = np.random.default_rng(14)
    points = random.random((60_000, 3)) + random.integers(0, 3, (60_000, 1))
    centres = points[:16].copy()
    for _ in range(8):
        squares = (points**2).sum(axis=1)[:, None] - 2.0 * points @ centres.T + (centres**2).sum(axis=1)
        nearest = squares.argmin(axis=1)
        counts = np.maximum(np.bincount(nearest, minlength=16), 1)
        centres = np.stack([np.bincount(nearest, points[:, axis], 16) / counts for axis in range(3)], axis=1)


def mandelbrot() -> None:
    """Iterate the whole plane."""
    x, y = np.linspace(-2.2, 0.8, 500), np.linspace(-1.2, 1.2, 400)
    c = x + 1j * y[:, None]
    z, turns = np.zeros_like(c), np.zeros(c.shape, np.int64)
    for _ in range(25):
        inside = z.real**2 + z.imag**2 < 4.0
        z = np.where(inside, z * z + c, z)
        turns = turns + inside


def perceptron() -> None:
    """Train a small network on batches, forward and backward."""
    random = np.random.default_rng(15)
    first, second = 0.1 * random.normal(size=(64, 128)), 0.1 * random.normal(size=(128, 10))
    for _ in range(12):
        samples, labels = random.normal(size=(3000, 64)), random.integers(0, 10, 3000)
        hidden = np.tanh(samples @ first)
        chances = np.exp(hidden @ second)
        chances = chances / chances.sum(axis=1, keepdims=True)
        error = (chances - np.eye(10)[labels]) / 3000.0
        back = (error @ second.T) * (1.0 - hidden**2)
        first, second = first - 0.5 * samples.T @ back, second - 0.5 * hidden.T @ error


PROGRAMS: dict[str, Callable[[], None]] = {
    program.__name__.replace("_", " "): program
    for program in (
        rolled_500,
        rolled_1000,
        rolled_2100,
        bodies,
        spectra,
        filters,
        tables,
        monte_carlo,
        products,
        built_and_kept,
        tiny,
        small_temporaries,
        through_ctypes,
        text_tables,
        statistics,
        waves,
        trees,
        batches,
        windows,
        sorting,
        growing_lists,
        images,
        random_sizes,
        many_arrays,
        sparse_zeros,
        columns,
        option_prices,
        game_of_life,
        reactions,
        clusters,
        mandelbrot,
        perceptron,
    )
}

if __name__ == "__main__":
    PROGRAMS[sys.argv[1]]()
