"""NumPy's own tests, run plainly and under install(), and compared test by test."""
