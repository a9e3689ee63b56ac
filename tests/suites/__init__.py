"""Other people's tests, run plainly and under firsttouch, and compared test by test."""
