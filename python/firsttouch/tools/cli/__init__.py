"""The command line: one file per command, and one per thing that a command needs."""
