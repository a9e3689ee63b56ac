"""Packaging: the wheel."""
