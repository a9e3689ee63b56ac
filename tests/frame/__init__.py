"""The frame: the wheel, the locks, the Makefile, the demonstration."""
