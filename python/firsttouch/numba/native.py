"""What compiled code calls, and how: the native module's functions, its structures by offset, and the code on them.

A cursor and its frames are structures of the native module (``numba/cursor.rs``); their first fields are accessed here
by offset. A few instructions are the fast path, a call into the native module is the slow path.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types

from firsttouch import _firsttouch


class LastError(Exception):
    """Makes the exception that the native module has ready, as those of compiled code take no arguments."""

    def __new__(cls, *_: object) -> BaseException:  # type: ignore[misc]
        """Return the exception for the last failure in this thread."""
        return _firsttouch.numba_failure()


WORD = ir.IntType(64)


BYTES = ir.IntType(8).as_pointer()


INFO = types.MemInfoPointer(types.voidptr)


FRAME, CURSOR_INFO, NOTHING, TOP, FLOOR = range(0, 40, 8)


FRAME_INFO, WATCHED, FRAME_TOP, _, OUTER, INNER = range(0, 48, 8)


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


def fail(context: Any, builder: Any) -> None:
    """Raise the exception for the last call, and end the block."""
    context.call_conv.return_user_exc(builder, LastError, ())


def unless_null(context: Any, builder: Any, value: Any) -> None:
    """Raise if a call returned null, or false."""
    with builder.if_then(builder.icmp_unsigned("==", value, value.type(None)), likely=False):
        fail(context, builder)


def rounded(builder: Any, size: Any) -> Any:
    """Return the size of an array, rounded up to a multiple of 64 and at least 64."""
    some = builder.zext(builder.icmp_unsigned("!=", size, WORD(0)), WORD)
    return builder.add(builder.or_(builder.sub(size, some), WORD(63)), WORD(1))


def allocate(context: Any, builder: Any, cursor: Any, size: Any) -> tuple[Any, Any]:
    """Allocate memory for an array; return it and its shared reference count."""
    taken, top = rounded(builder, size), get(builder, cursor, TOP)
    fits = builder.icmp_unsigned("<=", taken, builder.sub(top, get(builder, cursor, FLOOR)))
    with builder.if_else(fits, likely=True) as (quick, slow):
        with quick:
            start = builder.sub(top, taken)
            put(builder, cursor, TOP, start)
            cut = builder.inttoptr(start, BYTES)
            shared = get(builder, get(builder, cursor, FRAME, BYTES), FRAME_INFO, BYTES)
            quick_block = builder.block
        with slow:
            given = call(builder, "allocate", BYTES, cursor, size)
            unless_null(context, builder, given)
            own = get(builder, cursor, CURSOR_INFO, BYTES)
            slow_block = builder.block
    data, info = builder.phi(BYTES), builder.phi(BYTES)
    data.add_incoming(cut, quick_block)
    data.add_incoming(given, slow_block)
    info.add_incoming(shared, quick_block)
    info.add_incoming(own, slow_block)
    return data, info


def mark(context: Any, builder: Any, cursor: Any) -> Any:
    """Open a frame, and return it."""
    inner = get(builder, get(builder, cursor, FRAME, BYTES), INNER, BYTES)
    with builder.if_else(builder.icmp_unsigned("!=", inner, BYTES(None)), likely=True) as (quick, slow):
        with quick:
            put(builder, inner, FRAME_TOP, get(builder, cursor, TOP))
            put(builder, cursor, FRAME, inner)
            quick_block = builder.block
        with slow:
            opened = call(builder, "mark", BYTES, cursor)
            unless_null(context, builder, opened)
            slow_block = builder.block
    result = builder.phi(BYTES)
    result.add_incoming(inner, quick_block)
    result.add_incoming(opened, slow_block)
    return result


def rewind(context: Any, builder: Any, cursor: Any, frame: Any) -> None:
    """Close a frame and all frames inside it.

    Numba removes a pair of incref and decref if there is no decref between them. That would hide an array that is used
    after the rewind; so the slow path contains a decref of nothing, which the compiler cannot know.
    """
    innermost = builder.icmp_unsigned("==", get(builder, cursor, FRAME, BYTES), frame)
    start = builder.block
    with builder.if_then(innermost, likely=True):
        count = builder.load_atomic(place(builder, get(builder, frame, WATCHED, BYTES), 0), "acquire", 8)
        alone = builder.icmp_unsigned("==", count, WORD(1))
        look_block = builder.block
    is_quick = builder.phi(ir.IntType(1))
    is_quick.add_incoming(ir.IntType(1)(0), start)
    is_quick.add_incoming(alone, look_block)
    with builder.if_else(is_quick, likely=True) as (quick, slow):
        with quick:
            put(builder, cursor, TOP, get(builder, frame, FRAME_TOP))
            put(builder, cursor, FRAME, get(builder, frame, OUTER, BYTES))
        with slow:
            unless_null(context, builder, call(builder, "rewind", ir.IntType(8), cursor, frame))
            context.nrt.decref(builder, INFO, get(builder, cursor, NOTHING, BYTES))
