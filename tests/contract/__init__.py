"""The contract of all allocators, from Python: each law once, over every source, every adaptor and compositions."""
