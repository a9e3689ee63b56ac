"""The functions that run in the measured processes; each measures one thing in its own process."""
