"""One question per file, which is also its name on the command line: `run` asks it.

What is measured runs in processes of its own, one for each contender, which import the same file.
"""

from firsttouch.tools.bench import NAMES as BENCH

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
    "limit",
    "create",
    "inspect",
    "prefault",
    "kept",
    "scratch",
    "scratch_memory",
    "scratch_numba",
    "scratch_rust",
    "dask",
    "dask_memory",
    "advise",
    "trace",
    "shared",
)

#: The classic experiments, which `firsttouch bench` runs, too; some share their name with a comparison above.
CLASSIC = {f"bench-{name}": name for name in BENCH}
EVERY = (*NAMES, *CLASSIC)
