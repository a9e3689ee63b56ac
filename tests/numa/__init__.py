"""Placement on machines with several NUMA nodes, which this package boots."""
