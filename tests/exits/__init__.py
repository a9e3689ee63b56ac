"""How the interpreter ends."""
