"""Waves in a basin by the shallow water equations, with a picture and its statistics every eighth step."""

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]

CELLS, STEPS, GRAVITY, SPACING, TIME_STEP = 700, 80, 9.81, 1.0, 0.02


def fluxes(h: Array, hu: Array, hv: Array) -> tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]:
    """Return the fluxes of mass and momentum in both directions."""
    u, v = hu / h, hv / h
    pressure = 0.5 * GRAVITY * h * h
    return (hu, hu * u + pressure, hu * v), (hv, hv * u, hv * v + pressure)


def advance(q: Array, f: Array, g: Array) -> Array:
    """Do one Lax-Friedrichs step of one quantity; the boundary keeps its value."""
    new = q.copy()
    mean = 0.25 * (q[:-2, 1:-1] + q[2:, 1:-1] + q[1:-1, :-2] + q[1:-1, 2:])
    change = (f[2:, 1:-1] - f[:-2, 1:-1]) + (g[1:-1, 2:] - g[1:-1, :-2])
    new[1:-1, 1:-1] = mean - TIME_STEP / (2.0 * SPACING) * change
    return new


def picture(h: Array) -> Array:
    """Return a shaded relief of the surface, in colour, at half the resolution."""
    slope_x, slope_y = np.gradient(h)
    light = np.clip(0.5 + 4.0 * (slope_x + slope_y), 0.0, 1.0)
    level = (h - h.min()) / (np.ptp(h) + 1e-12)
    colour = np.stack([light * level, light * 0.6, light * (1.0 - level)], axis=-1)
    return colour.reshape(CELLS // 2, 2, CELLS // 2, 2, 3).mean(axis=(1, 3))


def run() -> float:
    """Eighty steps."""
    x, y = np.meshgrid(np.arange(CELLS), np.arange(CELLS), indexing="ij")
    h = 10.0 + 2.0 * np.exp(-((x - CELLS / 3) ** 2 + (y - CELLS / 2) ** 2) / 900.0)
    hu, hv = np.zeros_like(h), np.zeros_like(h)
    pictures: list[npt.NDArray[np.uint8]] = []
    spectrum = 0.0
    for step in range(STEPS):
        (fh, fu, fv), (gh, gu, gv) = fluxes(h, hu, hv)
        h, hu, hv = advance(h, fh, gh), advance(hu, fu, gu), advance(hv, fv, gv)
        if step % 8 == 7:
            pictures.append((picture(h) * 255.0).astype(np.uint8))
            waves = np.abs(np.fft.rfft2(h - h.mean())) ** 2
            spectrum += float(np.log1p(waves).mean())
    return float(h.std()) + spectrum + float(np.mean([image.mean() for image in pictures]))


if __name__ == "__main__":
    print(run())
