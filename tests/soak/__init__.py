"""A program that runs for long: what it holds of the machine must not grow.

``python -m tests.soak --seconds 3600`` mixes what services do, and samples resident memory, mappings, file descriptors
and threads. It fails if any of them has an upward trend in the second half of the run.
"""
