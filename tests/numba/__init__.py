"""Scratch buffers inside code that Numba compiles."""
