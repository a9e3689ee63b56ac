"""What compiled code calls, and how: errors of the native module, its structures by offset, and the code on them.

A cursor and its frames are structures of the native module (``numba/cursor.rs``); their first fields are accessed here
by offset. A few instructions are the fast path, a call into the native module is the slow path.
"""

from __future__ import annotations

import platform
import threading
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from firsttouch import _firsttouch


def in_use(owner: int, caller: int) -> str:
    """Return a message that names the thread using a buffer and the thread that tried to; zero stands for none."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    user = f"thread {names.get(owner, hex(owner))!r}" if owner else "no call of compiled code"
    wanted = f"thread {names.get(caller, hex(caller))!r}"
    return (
        f"this scratch buffer is in use by {user}, and {wanted} may not use it: give each thread a buffer of its own, "
        "and a loop in parallel (prange) a firsttouch.numba.ThreadBuffers"
    )


class _CompiledError(Exception):
    """An exception of compiled code, which has no arguments: the native module knows why."""

    def __init__(self, *args: object) -> None:
        super().__init__(*(args or (_firsttouch.numba_failure(),)))


class BufferFullError(_CompiledError, MemoryError):
    """A buffer is full; the message states what was requested and which limit was exceeded."""


class MarkError(_CompiledError, ValueError):
    """A buffer was rewound in the wrong order, or to another buffer's mark."""


class ShapeError(_CompiledError, ValueError):
    """A shape has a negative dimension, or more bytes than can be addressed."""


class ThreadError(_CompiledError, RuntimeError):
    """A buffer was used in a thread other than that of the call it was passed to."""


# Keys are the error codes of the native module.
CODES = {1: BufferFullError, 2: MarkError, 3: ThreadError, 4: ShapeError}


_firsttouch.register(numba_in_use=in_use, numba_errors=CODES)


WORD = ir.IntType(64)


BYTES = ir.IntType(8).as_pointer()


INFO = types.MemInfoPointer(types.voidptr)


TOP, END, FRAME, OWNER, PLACE, CURSOR_INFO, NOTHING = range(0, 56, 8)


FRAME_INFO, FRAME_TOP, FRAME_PLACE, GENERATION, OUTER, INNER = range(0, 48, 8)


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


def rounded(builder: Any, size: Any) -> Any:
    """Return the size of an array, rounded up to a multiple of 64 and at least 64."""
    some = builder.zext(builder.icmp_unsigned("!=", size, WORD(0)), WORD)
    return builder.add(builder.or_(builder.sub(size, some), WORD(63)), WORD(1))


def allocate(context: Any, builder: Any, cursor: Any, size: Any) -> tuple[Any, Any]:
    """Allocate memory for an array; return it and its shared reference count."""
    taken = rounded(builder, size)
    top = get(builder, cursor, TOP)
    fits = builder.icmp_unsigned("<=", taken, builder.sub(get(builder, cursor, END), top))
    mine = builder.icmp_unsigned("==", get(builder, cursor, OWNER), thread(builder))
    with builder.if_else(builder.and_(fits, mine), likely=True) as (quick, slow):
        with quick:
            put(builder, cursor, TOP, builder.add(top, taken))
            bumped = builder.inttoptr(top, BYTES)
            shared = get(builder, get(builder, cursor, FRAME, BYTES), FRAME_INFO, BYTES)
            quick_block = builder.block
        with slow:
            given = call(builder, "allocate", BYTES, cursor, size)
            unless_null(context, builder, given, 3, 1)
            own = get(builder, cursor, CURSOR_INFO, BYTES)
            slow_block = builder.block
    data, info = builder.phi(BYTES), builder.phi(BYTES)
    data.add_incoming(bumped, quick_block)
    data.add_incoming(given, slow_block)
    info.add_incoming(shared, quick_block)
    info.add_incoming(own, slow_block)
    return data, info


def mark(context: Any, builder: Any, cursor: Any) -> tuple[Any, Any, Any, Any]:
    """Open a frame; return it, its generation, and the frame and position to restore.

    The last two are also stored in the frame. Keeping them in registers avoids a load right after the store.
    """
    frame, top = get(builder, cursor, FRAME, BYTES), get(builder, cursor, TOP)
    inner = get(builder, frame, INNER, BYTES)
    mine = builder.icmp_unsigned("==", get(builder, cursor, OWNER), thread(builder))
    known = builder.icmp_unsigned("!=", inner, BYTES(None))
    with builder.if_else(builder.and_(known, mine), likely=True) as (quick, slow):
        with quick:
            put(builder, inner, FRAME_TOP, top)
            put(builder, inner, FRAME_PLACE, get(builder, cursor, PLACE))
            next_generation = builder.add(get(builder, inner, GENERATION), WORD(1))
            put(builder, inner, GENERATION, next_generation)
            put(builder, cursor, FRAME, inner)
            quick_block = builder.block
        with slow:
            opened = call(builder, "mark", BYTES, cursor)
            unless_null(context, builder, opened, 3, 1)
            its_generation = get(builder, opened, GENERATION)
            slow_block = builder.block
    result, generation = builder.phi(BYTES), builder.phi(WORD)
    result.add_incoming(inner, quick_block)
    result.add_incoming(opened, slow_block)
    generation.add_incoming(next_generation, quick_block)
    generation.add_incoming(its_generation, slow_block)
    return result, generation, frame, top


def rewind(context: Any, builder: Any, cursor: Any, mark: Any) -> None:
    """Close a frame and all frames inside it.

    Numba removes a pair of incref and decref if there is no decref between them. That would hide an array that is used
    after the rewind; so the slow path contains a decref of nothing, which the compiler cannot know.
    """
    frame, generation = mark.frame, mark.generation
    current = get(builder, cursor, FRAME, BYTES)
    mine = builder.icmp_unsigned("==", get(builder, cursor, OWNER), thread(builder))
    innermost = builder.and_(mine, builder.icmp_unsigned("==", current, frame))
    start = builder.block
    with builder.if_then(innermost, likely=True):
        count = builder.load_atomic(place(builder, get(builder, frame, FRAME_INFO, BYTES), 0), "acquire", 8)
        plain = builder.icmp_unsigned("==", get(builder, frame, FRAME_PLACE), get(builder, cursor, PLACE))
        same = builder.icmp_unsigned("==", get(builder, frame, GENERATION), generation)
        alone = builder.icmp_unsigned("==", count, WORD(1))
        looked = builder.and_(builder.and_(plain, same), alone)
        look_block = builder.block
    is_quick = builder.phi(ir.IntType(1))
    is_quick.add_incoming(ir.IntType(1)(0), start)
    is_quick.add_incoming(looked, look_block)
    with builder.if_else(is_quick, likely=True) as (quick, slow):
        with quick:
            put(builder, cursor, TOP, mark.top)
            put(builder, cursor, FRAME, mark.outer)
        with slow:
            code = call(builder, "rewind", ir.IntType(32), cursor, frame, generation)
            with builder.if_then(builder.icmp_unsigned("!=", code, ir.IntType(32)(0)), likely=False):
                fail(context, builder, 3, 1, 2)
            context.nrt.decref(builder, INFO, get(builder, cursor, NOTHING, BYTES))
