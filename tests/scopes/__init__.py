"""use(): an allocator for a block of code, whatever the block consists of."""
