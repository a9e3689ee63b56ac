"""The functions that run in the workers; each measures one thing in its own process."""
