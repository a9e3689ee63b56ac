"""What a block of code asks of memory, measured."""
