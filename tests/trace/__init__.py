"""Traces: recorded, read, played, summed up."""
