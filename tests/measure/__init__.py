"""The memory use of a block of code, measured."""
