"""One question per file, which is also its name on the command line: `run` asks it.

What is measured runs in processes of its own, one for each contender, which import the same file.
"""

NAMES = (
    "add",
    "expression",
    "shifts",
    "kernels",
    "programs",
    "languages",
    "small",
    "zeros",
    "memory",
    "workloads",
    "startup",
    "create",
    "kept",
    "back",
    "scratch",
    "scratch_numba",
    "scratch_rust",
    "dask",
    "advise",
)
