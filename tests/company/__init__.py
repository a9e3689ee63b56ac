"""Other software in the same process: allocators, profilers, hooks, the interpreter's own checks."""
