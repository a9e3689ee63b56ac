"""Sharpen a blurred image: plainly, in scratch memory, and with buffers kept by hand.

    python examples/richardson_lucy.py [--size 256] [--steps 10] [--rounds 15]

prints the time of a step in each of the three ways, and whether their results are bitwise identical. The filter is that
of Richardson (1972) and Lucy (1974), with a Gaussian blur. In scratch memory its code is the plain one.
"""

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np

import firsttouch as ft

Image = np.ndarray[Any, np.dtype[np.float64]]
Step = Callable[[Image, Image], Image]

RADIUS = 3
_BELL = np.exp(-0.5 * (np.arange(-RADIUS, RADIUS + 1) / 1.5) ** 2)
WEIGHTS: list[float] = (_BELL / _BELL.sum()).tolist()
TINY = 1e-9


# ---- Plainly: every operation creates an array.


def smooth(image: Image) -> Image:
    """Return the weighted means along columns, with periodic boundaries."""
    wide = np.concatenate((image[-RADIUS:], image, image[:RADIUS]))
    total = WEIGHTS[0] * wide[: len(image)]
    for k in range(1, len(WEIGHTS)):
        total = total + WEIGHTS[k] * wide[k : k + len(image)]
    return total


def blur(image: Image) -> Image:
    """Smooth the columns, then the rows."""
    return smooth(smooth(image).T).T


def step(estimate: Image, image: Image) -> Image:
    """Return a better estimate of the image that was blurred to `image`."""
    return estimate * blur(image / (blur(estimate) + TINY))


# ---- In scratch memory: the same function. Its result is copied, everything else is freed when it ends.

step_in_scratch: Step = ft.scratch(step)


# ---- With buffers kept by hand: as few as possible, and `out=` everywhere.


class ByHand:
    """The same step for images of one shape."""

    def __init__(self, shape: tuple[int, int]) -> None:
        rows, columns = shape
        wide = np.empty(max((rows + 2 * RADIUS) * columns, rows * (columns + 2 * RADIUS)))
        total, product = np.empty(shape), np.empty(shape)
        tall = wide[: (rows + 2 * RADIUS) * columns].reshape(-1, columns)
        broad = wide[: rows * (columns + 2 * RADIUS)].reshape(rows, -1)
        self.for_columns = tall, total, product
        self.for_rows = broad.T, total.T, product.T  # so that the memory order is that of the image
        self.ratio = np.empty(shape)
        self.results = [np.empty(shape), np.empty(shape)]

    def smooth(self, image: Image, buffers: tuple[Image, Image, Image]) -> Image:
        """Smooth as above; the result is valid until the next call."""
        wide, total, product = buffers
        np.concatenate((image[-RADIUS:], image, image[:RADIUS]), out=wide)
        np.multiply(WEIGHTS[0], wide[: len(image)], out=total)
        for k in range(1, len(WEIGHTS)):
            np.multiply(WEIGHTS[k], wide[k : k + len(image)], out=product)
            np.add(total, product, out=total)
        return total

    def blur(self, image: Image) -> Image:
        """As above."""
        return self.smooth(self.smooth(image, self.for_columns).T, self.for_rows).T

    def step(self, estimate: Image, image: Image) -> Image:
        """Step as above; the result is valid until the call after the next."""
        np.add(self.blur(estimate), TINY, out=self.ratio)
        np.divide(image, self.ratio, out=self.ratio)
        self.results.reverse()
        return np.multiply(estimate, self.blur(self.ratio), out=self.results[0])


# ---- All three, alternating.


def ways(shape: tuple[int, int]) -> dict[str, Step]:
    """Return the three ways by name."""
    return {"plainly": step, "in scratch memory": step_in_scratch, "kept by hand": ByHand(shape).step}


def blurred_image(size: int) -> Image:
    """Return stars on a dim sky, blurred."""
    random = np.random.default_rng(0)
    stars: Image = random.random((size, size)) ** 50 * 100 + 0.1
    return blur(stars)


def sharpened(step: Step, image: Image, steps: int) -> Image:
    """Return the estimate after that many steps."""
    estimate = np.full_like(image, image.mean())
    for _ in range(steps):
        estimate = step(estimate, image)
    return estimate


def main() -> None:
    """Time the three ways alternately."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("--size", 256), ("--steps", 10), ("--rounds", 15)):
        parser.add_argument(name, type=int, default=default)
    given = parser.parse_args()

    image = blurred_image(given.size)
    every = ways((given.size, given.size))
    results = [sharpened(step, image, given.steps) for step in every.values()]
    times: dict[str, list[float]] = {name: [] for name in every}
    for _ in range(given.rounds):
        for name, step in every.items():
            start = time.perf_counter()
            sharpened(step, image, given.steps)
            times[name].append((time.perf_counter() - start) / given.steps * 1e3)

    print(f"{given.size} x {given.size} pixels, milliseconds per step:")
    for name, row in times.items():
        print(f"{name:>20}: {median(row):.3f}")
    print("the results are bitwise identical:", all(np.array_equal(results[0], other) for other in results[1:]))


if __name__ == "__main__":
    main()
