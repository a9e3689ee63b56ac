"""Short numerical programs as people write them, one per file; `run` returns a number to compare."""

NAMES = (
    "advection",
    "black_scholes",
    "correlation",
    "game_of_life",
    "gaussian_blur",
    "gray_scott",
    "haversine",
    "heat",
    "jacobi",
    "kmeans",
    "mandelbrot",
    "n_body",
    "perceptron",
    "smoothing",
    "sobel",
    "spectral_norm",
)
