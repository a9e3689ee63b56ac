"""Mistakes in what a command was asked."""


class BadUsageError(Exception):
    """What the user asked for cannot be done; the message is the one line to print."""
