"""The classic experiments on the memory behind arrays: one a file, named as on the command line."""

#: Each experiment with the question that it answers.
NAMES: dict[str, str] = {}
