"""The command line and all that stands behind it."""
