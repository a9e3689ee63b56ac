"""One question per file, which is also its name on the command line: `run` asks it.

What is measured runs in processes of its own, one for each contender, which import the same file.
"""

NAMES = (
    "temporaries",
    "kept",
    "kernels",
    "programs",
    "languages",
    "startup",
    "back",
    "scratch",
    "scratch_numba",
    "advise",
    "beyond",
)
