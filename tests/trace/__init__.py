"""Traces: what a program requests by line, and what a pool would save."""
