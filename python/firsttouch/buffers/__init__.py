"""Scratch memory: what is Python about it. `firsttouch.scratch` itself is the context manager and decorator."""
