"""The arrays themselves: their contents, sizes, types, growth and zeros."""
