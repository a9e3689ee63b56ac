"""Scratch memory: what scopes mean, and that no array dangles, whatever becomes of them."""
