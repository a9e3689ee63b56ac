"""`firsttouch compare`: interleaved runs of one program under several allocators, and their statistics."""
