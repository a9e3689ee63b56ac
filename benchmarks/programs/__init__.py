"""Whole programs as people write them, one a file, each also `python FILE`; `run` returns a number to compare."""

NAMES = (
    "etl_pandas",
    "image_pyramid",
    "kd_statistics",
    "lattice_boltzmann",
    "multigrid",
    "particle_in_cell",
    "random_forest",
    "shallow_water",
    "spectral_solver",
)
