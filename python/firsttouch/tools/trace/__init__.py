"""Traces: replaying them, summarizing them by source line, and estimating what a pool would save."""
