"""The pictures of those experiments that have several."""
