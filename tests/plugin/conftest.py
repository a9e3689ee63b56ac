"""Runs the sample's tests from tests, in a folder of their own."""

collect_ignore = ["sample"]
