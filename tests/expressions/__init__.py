"""Allocators as text, checked arguments and tables for notebooks."""
