"""The command line and everything behind it."""
