"""The tests of the Python side; each folder is a package, so that file names may repeat."""
