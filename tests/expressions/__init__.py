"""Allocators as text, and the functions that their declaration makes."""
