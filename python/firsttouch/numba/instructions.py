"""Code generation: a few instructions on a cursor as the fast path, a call into the native module as the slow path."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from firsttouch.numba.native import (
    BYTES,
    CHUNK,
    CURSOR_INFO,
    END,
    FRAME,
    FRAME_CHUNK,
    FRAME_INFO,
    FRAME_SLOW,
    FRAME_TOP,
    GENERATION,
    INFO,
    INNER,
    NOTHING,
    OWNER,
    TOP,
    WORD,
    call,
    fail,
    get,
    place,
    put,
    thread,
    unless_null,
)


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
            put(builder, inner, FRAME_CHUNK, get(builder, cursor, CHUNK))
            put(builder, inner, FRAME_SLOW, WORD(0))
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
        plain = builder.icmp_unsigned("==", get(builder, frame, FRAME_SLOW), WORD(0))
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
