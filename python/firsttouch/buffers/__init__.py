"""Scratch memory: buffers, the scopes and marks on them, and what a decorated function warns of or raises."""

from firsttouch._firsttouch import Buffer, FixedBuffer, Mark, Scope, ScratchBuffer, scratch, scratch_from_table
from firsttouch.buffers.default import default_buffer, using_buffer
from firsttouch.buffers.errors import EscapeError, EscapeWarning
from firsttouch.buffers.kinds import OwnScratch

__all__ = [
    "Buffer",
    "EscapeError",
    "EscapeWarning",
    "FixedBuffer",
    "Mark",
    "OwnScratch",
    "Scope",
    "ScratchBuffer",
    "default_buffer",
    "scratch",
    "scratch_from_table",
    "using_buffer",
]
