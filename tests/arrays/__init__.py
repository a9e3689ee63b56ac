"""The arrays themselves: their bytes, sizes, types, growth and zeros."""
