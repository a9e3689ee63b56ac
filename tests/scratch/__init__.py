"""Scratch memory: the semantics of scopes, and that no array ever dangles."""
