"""The contract of all allocators, from Python: the laws once, over every source, every adaptor and compositions."""
