"""Photographs of different sizes blended by their Laplacian pyramids."""

import numpy as np
import numpy.typing as npt

Image = npt.NDArray[np.float32]

KERNEL = np.array([1, 4, 6, 4, 1], np.float32) / np.float32(16)


def blur(image: Image) -> Image:
    """Apply the binomial filter along both axes."""
    padded = np.pad(image, ((2, 2), (0, 0), (0, 0)), mode="reflect")
    rows = sum(KERNEL[i] * padded[i : i + len(image)] for i in range(5))
    padded = np.pad(rows, ((0, 0), (2, 2), (0, 0)), mode="reflect")
    return np.asarray(sum(KERNEL[i] * padded[:, i : i + image.shape[1]] for i in range(5)))


def larger(image: Image, shape: tuple[int, ...]) -> Image:
    """Return the image at twice the size, smoothed."""
    spread = np.zeros((*shape[:2], image.shape[2]), np.float32)
    spread[::2, ::2] = image
    return np.asarray(np.float32(4) * blur(spread))


def pyramid(image: Image) -> list[Image]:
    """Return the differences between neighbouring resolutions, and the rest."""
    levels: list[Image] = []
    while min(image.shape[:2]) > 16:
        small = blur(image)[::2, ::2]
        levels.append(image - larger(small, image.shape))
        image = small
    return [*levels, image]


def blend(one: Image, other: Image, mask: Image) -> Image:
    """Blend both images according to the mask, without a seam."""
    masks = [mask]
    for _ in pyramid(one)[1:]:
        masks.append(blur(masks[-1])[::2, ::2])
    levels = [m * a + (1 - m) * b for a, b, m in zip(pyramid(one), pyramid(other), masks, strict=True)]
    result = levels.pop()
    while levels:
        level = levels.pop()
        result = level + larger(result, level.shape)
    return np.clip(result, 0, 1)


def photograph(random: np.random.Generator, height: int, width: int) -> Image:
    """Return smooth noise in three colours."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float32)
    waves = [np.sin(x / random.uniform(5, 90) + y / random.uniform(5, 90)) for _ in range(3)]
    grain = random.random((height, width, 3), dtype=np.float32)
    return np.asarray(np.float32(0.35) * (np.stack(waves, axis=-1) + 1) + np.float32(0.3) * grain)


def run() -> float:
    """Blend ten pairs of images, each pair of a different size."""
    random = np.random.default_rng(3)
    total = 0.0
    for _ in range(10):
        height, width = int(random.integers(200, 700)), int(random.integers(200, 1000))
        one, other = photograph(random, height, width), photograph(random, height, width)
        mask = np.zeros((height, width, 1), np.float32)
        mask[:, : width // 2] = 1
        blended = blend(one, other, mask)
        histogram, _ = np.histogram(blended, 64)
        total += float(blended.mean()) + float(histogram.std()) / blended.size
    return total


if __name__ == "__main__":
    print(run())
