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

#: Programs that build large data once: no allocator can recycle anything for them.
BUILT_ONCE = (
    "decoded_images",
    "design_matrix",
    "distance_matrix",
    "joined_tables",
    "lookup_tables",
)
