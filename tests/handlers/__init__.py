"""NumPy handlers that are not as usual."""
