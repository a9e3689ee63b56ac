"""Packaging: the wheel, the locked requirements, the Makefile, the demonstration."""
