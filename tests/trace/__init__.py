"""Traces: recorded, read, summarized."""
