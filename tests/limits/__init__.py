"""Scarce memory: limits of the process, of a container, of the machine."""
