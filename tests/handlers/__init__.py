"""Unusual NumPy handlers."""
