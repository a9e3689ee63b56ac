"""Traces: recorded, read, replayed, summarized."""
