"""Arrays shared between processes."""
