"""The classic experiments on the memory behind arrays: one a file, named as on the command line."""

#: Each experiment with the question that it answers.
NAMES: dict[str, str] = {
    "zeros": "creating zeros looks a hundred times faster than writing them; what remains when they are used?",
    "touch": "how many bytes a second become real, by page size, way and threads?",
    "triad": "how wrong is a bandwidth test on arrays that were never written?",
    "refill": "what does the first fill of an array pay, and does reading it first help?",
}
