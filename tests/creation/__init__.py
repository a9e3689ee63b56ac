"""NumPy's constructors on memory of one's choice."""
