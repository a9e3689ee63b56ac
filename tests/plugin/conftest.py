"""The sample's tests are run by tests, in a folder of their own."""

collect_ignore = ["sample"]
