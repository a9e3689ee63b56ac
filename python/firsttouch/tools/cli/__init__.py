"""The command line of the package."""


class BadUsageError(Exception):
    """A request that cannot be fulfilled; the message is the one line to print."""
