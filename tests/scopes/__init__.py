"""use(): an allocator for a block of code, whatever the block is made of."""
