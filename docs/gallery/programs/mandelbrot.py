"""The Mandelbrot set as NumPy's quickstart draws it: every step computes on the whole plane."""

import sys

import numpy as np


def mandelbrot(height, width, steps=50, radius=2.0):
    """Return for each point the step at which it diverges."""
    x = np.linspace(-2.5, 1.5, width)
    y = np.linspace(-1.5, 1.5, height)
    a, b = np.meshgrid(x, y)
    c = a + b * 1j
    z = np.zeros_like(c)
    diverged_at = np.full(z.shape, steps)
    for step in range(steps):
        z = z**2 + c
        diverging = abs(z) > radius
        now = diverging & (diverged_at == steps)
        diverged_at[now] = step
        z[diverging] = radius
    return diverged_at


size = int(sys.argv[1]) if len(sys.argv) > 1 else 1200
image = mandelbrot(size, size * 4 // 3)
print(f"{image.shape[1]} x {image.shape[0]} points, {np.mean(image == 50):.2%} of them in the set")
