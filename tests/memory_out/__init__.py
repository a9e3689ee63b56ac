"""Out of memory."""
