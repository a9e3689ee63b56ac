"""One experiment a file; the file's name is the experiment's name on the command line."""

NAMES = (
    "add",
    "expression",
    "kernels",
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
    "scratch",
    "scratch_filter",
    "scratch_edge",
    "scratch_cost",
    "scratch_memory",
    "scratch_numba",
)
