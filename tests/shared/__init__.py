"""Arrays that processes share."""
