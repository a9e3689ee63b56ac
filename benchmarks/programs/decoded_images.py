"""Photographs of eight bits, decoded into one array of floating-point numbers and normalised by channel."""

import numpy as np


def run() -> float:
    """Return a statistic of the normalised images."""
    random = np.random.default_rng(11)
    images = random.integers(0, 256, size=(160, 480, 640, 3), dtype=np.uint8)
    stack = images.astype(np.float32)
    stack *= np.float32(1 / 255)
    mean, spread = stack[::8].mean(axis=(0, 1, 2)), stack[::8].std(axis=(0, 1, 2))
    stack -= mean
    stack /= spread
    return float(np.abs(stack[::16]).mean())


if __name__ == "__main__":
    print(run())
