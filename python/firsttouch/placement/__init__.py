"""Where an array's pages come from and when they become real: page size, NUMA nodes, prefault, and the receipt."""
