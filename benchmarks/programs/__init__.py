"""Whole programs as people write them, one per file, which also run as `python FILE`; `run` returns a number to
compare.
"""

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
