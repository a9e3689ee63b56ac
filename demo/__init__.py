"""A real NumPy program on real data, plainly and under firsttouch: `make demo`."""
