"""The native module's structures and functions, as compiled code accesses them.

A cursor and its frames are structures of the native module (``numba/cursor.rs``, ``numba/frame.rs``); their first
fields are accessed here by offset.
"""

from __future__ import annotations

import platform
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from firsttouch.numba.errors import CODES

WORD = ir.IntType(64)
BYTES = ir.IntType(8).as_pointer()
INFO = types.MemInfoPointer(types.voidptr)

TOP, END, FRAME, OWNER, CURSOR_INFO, NOTHING = 0, 8, 16, 24, 40, 48
FRAME_INFO, FRAME_TOP, FRAME_CHUNK, FRAME_SLOW, GENERATION, OUTER, INNER = 0, 8, 16, 24, 32, 40, 48
CHUNK = 32

# The address space of the segment register fs, whose first word is the thread's own address.
FS = 257


def place(builder: Any, base: Any, offset: int, kind: Any = WORD) -> Any:
    """Return a pointer to the field at an offset."""
    return builder.bitcast(builder.gep(base, [WORD(offset)]), kind.as_pointer())


def get(builder: Any, base: Any, offset: int, kind: Any = WORD) -> Any:
    """Return the field at an offset."""
    return builder.load(place(builder, base, offset, kind))


def put(builder: Any, base: Any, offset: int, value: Any) -> None:
    """Set the field at an offset."""
    builder.store(value, place(builder, base, offset, value.type))


def call(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """Call a function of the native module."""
    kind = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, f"firsttouch_numba_{name}"), arguments)


def thread(builder: Any) -> Any:
    """Return the number of the calling thread: its thread pointer, read by one instruction, or the result of a call."""
    if platform.machine() == "x86_64":
        return builder.load(ir.Constant(ir.PointerType(WORD, addrspace=FS), None))
    return call(builder, "thread", WORD)


def fail(context: Any, builder: Any, *codes: int) -> None:
    """Raise the error of the last call, one of these codes, and end the block."""
    *others, last = codes
    if others:
        found = call(builder, "failure_code", ir.IntType(32))
        for code in others:
            with builder.if_then(builder.icmp_unsigned("==", found, ir.IntType(32)(code)), likely=False):
                context.call_conv.return_user_exc(builder, CODES[code], ())
    context.call_conv.return_user_exc(builder, CODES[last], ())


def unless_null(context: Any, builder: Any, value: Any, *codes: int) -> None:
    """Raise if a call returned null."""
    with builder.if_then(builder.icmp_unsigned("==", value, value.type(None)), likely=False):
        fail(context, builder, *codes)
