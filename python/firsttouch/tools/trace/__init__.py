"""Traces: played again, summed up by line, and what they say about a pool."""
