"""The command line, tested from outside: real processes, real files."""
