"""Scratch buffers inside code compiled by Numba."""
