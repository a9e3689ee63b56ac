"""Sun and soil on a mountain ridge: a year of sunlight, and the erosion of its slopes.

Plain NumPy on a real elevation model, the Jacksboro fault in Tennessee, which is included in matplotlib.
The program does not use firsttouch: every line is written as one would write it first.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from matplotlib import cbook
from numpy.typing import NDArray

Field = NDArray[np.float64]

METRES_PER_DEGREE = 111_200.0
LATITUDE = np.radians(36.6)
DAYS = 24  # days of a year that are sampled
HOURS = np.arange(-6.0, 6.25, 0.25)[:, None, None]  # relative to noon
CREEP = 0.01  # square metres per year: how fast soil creeps downhill
SLIDE = 1.2  # the slope at which soil slides
STEP = 1_000.0  # years
STEPS = 600


def load() -> tuple[Field, float, float]:
    """Return the elevation in metres, and the size of its cells in metres."""
    model: Any = cbook.get_sample_data("jacksboro_fault_dem.npz")
    with model:
        height = model["elevation"].astype(np.float64)
        dx = METRES_PER_DEGREE * float(model["dx"]) * float(np.cos(LATITUDE))
        dy = METRES_PER_DEGREE * float(model["dy"])
    return height, dx, dy


def sunlight(height: Field, dx: float, dy: float) -> Field:
    """Return the direct sunlight on each cell, averaged over a year; a low sun is weak; all hours of a day at once."""
    fall_y, fall_x = np.gradient(height, dy, dx)
    steepness = np.sqrt(1.0 + fall_x**2 + fall_y**2)
    angle = np.radians(15.0) * HOURS
    light = np.zeros_like(height)
    for declination in np.radians(23.44) * np.sin(np.linspace(0, 2 * np.pi, DAYS, endpoint=False)):
        sine, cosine = np.sin(declination), np.cos(declination) * np.cos(angle)
        up = np.maximum(np.sin(LATITUDE) * sine + np.cos(LATITUDE) * cosine, 0.0)
        east = -np.cos(declination) * np.sin(angle)
        north = np.cos(LATITUDE) * sine - np.sin(LATITUDE) * cosine
        facing = (up - east * fall_x + north * fall_y) / steepness
        light = light + np.mean(up * np.clip(facing, 0.0, 1.0), axis=0)
    return light / DAYS


def wear(height: Field, dx: float, dy: float) -> Field:
    """Let soil creep downhill for 600,000 years, faster on steep slopes; the boundary stays as it is."""
    for _ in range(STEPS):
        slope_x = (height[:, 1:] - height[:, :-1]) / dx
        slope_y = (height[1:, :] - height[:-1, :]) / dy
        flow_x = CREEP * slope_x / (1.0 - np.minimum((slope_x / SLIDE) ** 2, 0.9))
        flow_y = CREEP * slope_y / (1.0 - np.minimum((slope_y / SLIDE) ** 2, 0.9))
        gain = (flow_x[1:-1, 1:] - flow_x[1:-1, :-1]) / dx + (flow_y[1:, 1:-1] - flow_y[:-1, 1:-1]) / dy
        height = height + np.pad(STEP * gain, 1)
    return height


def describe(name: str, field: Field) -> None:
    """Print one line: the range, the mean and a hash of every bit."""
    print(
        f"{name:12} min {field.min():10.4f}  mean {field.mean():10.4f}  max {field.max():10.4f}"
        f"  sha256 {hashlib.sha256(field.tobytes()).hexdigest()[:16]}"
    )


def main() -> None:
    """Read the model, light it, erode it, light it again."""
    height, dx, dy = load()
    print(f"Jacksboro fault: {height.shape[0]} x {height.shape[1]} cells of {dx:.1f} x {dy:.1f} m")
    describe("height", height)
    describe("sunlight", sunlight(height, dx, dy))
    worn = wear(height, dx, dy)
    describe("worn height", worn)
    describe("its sunlight", sunlight(worn, dx, dy))
    describe("lost or won", worn - height)


if __name__ == "__main__":
    main()
