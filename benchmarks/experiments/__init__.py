"""One experiment per file; the file's name is the experiment's name on the command line."""

from firsttouch.tools.bench import NAMES as BENCH

NAMES = (
    "add",
    "expression",
    "shifts",
    "kernels",
    "programs",
    "oracle",
    "retention",
    "languages",
    "small",
    "zeros",
    "memory",
    "workloads",
    "startup",
    "limit",
    "create",
    "adaptors",
    "bundled",
    "inspect",
    "prefault",
    "kept",
    "scratch",
    "scratch_filter",
    "scratch_edge",
    "scratch_cost",
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
