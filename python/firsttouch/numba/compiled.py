"""Buffers and marks as Numba knows them: their types, what may be done with them, and the code of their methods.

A cursor and its frames are structures of the native module (``numba/cursor.rs``); their first fields are accessed here
by offset. A few instructions are the fast path, a call into the native module is the slow path.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, errors, types
from numba.core.datamodel import models
from numba.core.imputils import impl_ret_new_ref, lower_constant
from numba.core.typing.npydecl import parse_dtype, parse_shape
from numba.core.typing.templates import AttributeTemplate, bound_function, signature
from numba.extending import NativeValue, box, infer_getattr, lower_builtin, register_model, typeof_impl, unbox
from numba.np.arrayobj import get_itemsize, make_array, populate_array
from numba.np.ufunc.parallel import get_thread_id

from firsttouch import _firsttouch


class LastError(Exception):
    """Makes the exception that the native module has ready, as those of compiled code take no arguments."""

    def __new__(cls, *_: object) -> BaseException:  # type: ignore[misc]
        """Return the exception for the last failure in this thread."""
        return _firsttouch.numba_failure()


lower: Callable[..., Callable[[Any], Any]] = lower_builtin

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


def unless_null(context: Any, builder: Any, value: Any) -> None:
    """Raise the exception for the last call if that returned null, or false."""
    with builder.if_then(builder.icmp_unsigned("==", value, value.type(None)), likely=False):
        context.call_conv.return_user_exc(builder, LastError, ())


def rounded(builder: Any, size: Any) -> Any:
    """Return the size of an array, rounded up to a multiple of 64 and at least 64."""
    some = builder.zext(builder.icmp_unsigned("!=", size, WORD(0)), WORD)
    return builder.add(builder.or_(builder.sub(size, some), WORD(63)), WORD(1))


def allocate(context: Any, builder: Any, cursor: Any, lengths: list[Any], itemsize: Any) -> tuple[Any, Any, Any]:
    """Allocate memory for an array; return it, its size in bytes, and its shared reference count."""
    size, bad = itemsize, ir.IntType(1)(0)
    for length in lengths:
        product = builder.smul_with_overflow(size, length)
        size = builder.extract_value(product, 0)
        negative = builder.icmp_signed("<", length, WORD(0))
        bad = builder.or_(bad, builder.or_(negative, builder.extract_value(product, 1)))
    taken, top = rounded(builder, size), get(builder, cursor, TOP)
    fits = builder.icmp_unsigned("<=", taken, builder.sub(top, get(builder, cursor, FLOOR)))
    with builder.if_else(builder.and_(fits, builder.not_(bad)), likely=True) as (quick, slow):
        with quick:
            start = builder.sub(top, taken)
            put(builder, cursor, TOP, start)
            cut = builder.inttoptr(start, BYTES)
            shared = get(builder, get(builder, cursor, FRAME, BYTES), FRAME_INFO, BYTES)
            quick_block = builder.block
        with slow:
            shape = cgutils.alloca_once_value(builder, cgutils.pack_array(builder, lengths, ty=WORD))
            at = builder.bitcast(shape, BYTES)
            given = call(builder, "allocate", BYTES, cursor, at, WORD(len(lengths)), itemsize)
            unless_null(context, builder, given)
            own = get(builder, cursor, CURSOR_INFO, BYTES)
            slow_block = builder.block
    data, info = builder.phi(BYTES), builder.phi(BYTES)
    data.add_incoming(cut, quick_block)
    data.add_incoming(given, slow_block)
    info.add_incoming(shared, quick_block)
    info.add_incoming(own, slow_block)
    return data, size, info


class _Type(types.Type):  # type: ignore[misc]
    """A type of one version of firsttouch: code in Numba's cache that another one compiled has other offsets."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.version = _firsttouch.__version__

    @property
    def key(self) -> tuple[str, str]:
        return self.name, self.version


class ScratchBufferType(_Type):
    """A scratch buffer, as an argument of compiled code."""


class ThreadBuffersType(_Type):
    """A buffer that the threads of a parallel loop share."""


class MarkType(_Type):
    """A position in a buffer. It cannot leave the call that made it, which makes rewinding safe."""


scratch_buffer = ScratchBufferType("ScratchBuffer")
thread_buffers = ThreadBuffersType("ThreadBuffers")
scratch_mark = MarkType("ScratchMark")


class _Address(models.PrimitiveModel):  # type: ignore[misc]
    """The address of a cursor, a list of cursors, or a frame."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, BYTES)


class _BufferModel(_Address):
    def get_data_type(self) -> Any:
        raise errors.UnsupportedError(
            "a ScratchBuffer cannot be kept in a list, a dict, an object or a generator, nor shared by the threads of "
            "a prange loop: pass it as an argument; for prange pass a firsttouch.numba.ThreadBuffers and take "
            "buffers.local() inside the loop"
        )


class _MarkModel(_Address):
    def _stays(self) -> Any:
        raise errors.UnsupportedError(
            "a mark stays in the function that made it: it cannot be an argument or a result, be kept in a list or by "
            "a generator, or go into a prange loop; let each function mark and rewind for itself"
        )

    get_data_type = get_argument_type = get_return_type = _stays


def _unboxer(name: str) -> Any:
    def unboxed(_kind: Any, obj: Any, c: Any) -> Any:
        entered = call(c.builder, f"enter{name}", BYTES, obj)

        def leave() -> None:
            call(c.builder, f"leave{name}", ir.VoidType(), entered)

        failed = c.builder.icmp_unsigned("==", entered, BYTES(None))
        return NativeValue(entered, is_error=failed, cleanup=leave)

    return unboxed


def _boxed(_kind: Any, value: Any, c: Any) -> Any:
    return call(c.builder, "object", c.pyapi.pyobj, value)


def _constant(_context: Any, _builder: Any, kind: Any, _value: Any) -> Any:
    raise errors.UnsupportedError(
        f"a {kind} cannot be a global variable of compiled code, because its address differs in every process: "
        "pass it as an argument"
    )


register_model(ScratchBufferType)(_BufferModel)
register_model(ThreadBuffersType)(_Address)
register_model(MarkType)(_MarkModel)
unbox(ScratchBufferType)(_unboxer(""))
unbox(ThreadBuffersType)(_unboxer("_all"))
box(ScratchBufferType)(_boxed)
for _kind in (ScratchBufferType, ThreadBuffersType):
    lower_constant(_kind)(_constant)
typeof_impl.register(_firsttouch.NumbaBuffers)(lambda _value, _context: thread_buffers)


def _shape(shape: Any) -> None: ...


def _shape_dtype(shape: Any, dtype: Any = None) -> None: ...


def _element(dtype: Any) -> Any:
    """Return the type of an array's elements; without a dtype, NumPy's default."""
    if dtype is None or cgutils.is_nonelike(dtype):
        return types.float64
    if isinstance(dtype, types.Function):
        return {float: types.float64, int: types.intp, bool: types.boolean}.get(dtype.typing_key)
    return parse_dtype(dtype)


def _constructor(name: str) -> Any:
    def resolve(_self: Any, _kind: Any, args: Any, kws: Any) -> Any:
        try:
            given = inspect.signature(_shape_dtype).bind(*args, **kws).arguments
        except TypeError as error:
            raise errors.TypingError(f"ScratchBuffer.{name}(shape, dtype=float64): {error}") from None
        ndim, element = parse_shape(given["shape"]), _element(given.get("dtype"))
        if ndim is None or element is None:
            wanted = "a shape is an int or a tuple of ints, a dtype one that Numba knows"
            raise errors.TypingError(f"ScratchBuffer.{name}{tuple(given.values())}: {wanted}")
        python = inspect.signature(_shape_dtype if "dtype" in given else _shape)
        return signature(types.Array(element, ndim, "C"), *given.values()).replace(pysig=python)

    return bound_function(f"ScratchBuffer.{name}")(resolve)


class BufferMethods(AttributeTemplate):  # type: ignore[misc]
    """The methods of a ScratchBuffer."""

    key = ScratchBufferType

    resolve_empty = _constructor("empty")
    resolve_zeros = _constructor("zeros")

    def _mark(self, _kind: Any, args: Any, kws: Any) -> Any:
        return signature(scratch_mark) if not args and not kws else None

    def _rewind(self, _kind: Any, args: Any, kws: Any) -> Any:
        return signature(types.none, scratch_mark) if args == (scratch_mark,) and not kws else None

    resolve_mark = bound_function("ScratchBuffer.mark")(_mark)
    resolve_rewind = bound_function("ScratchBuffer.rewind")(_rewind)


infer_getattr(BufferMethods)


class BuffersMethods(AttributeTemplate):  # type: ignore[misc]
    """The methods of ThreadBuffers."""

    key = ThreadBuffersType

    def _local(self, _kind: Any, args: Any, kws: Any) -> Any:
        return signature(scratch_buffer) if not args and not kws else None

    resolve_local = bound_function("ThreadBuffers.local")(_local)


infer_getattr(BuffersMethods)


def _array(context: Any, builder: Any, sig: Any, args: Any, zero: bool) -> Any:
    kind, of_shape, shape = sig.return_type, sig.args[1], args[1]
    itemsize = context.get_constant(types.intp, get_itemsize(context, kind))
    pairs = (
        [(of_shape, shape)]
        if isinstance(of_shape, types.Integer)
        else zip(of_shape, cgutils.unpack_tuple(builder, shape, count=len(of_shape)), strict=True)
    )
    lengths = [context.cast(builder, value, each, types.intp) for each, value in pairs]
    data, size, info = allocate(context, builder, args[0], lengths, itemsize)
    if zero:
        cgutils.memset(builder, data, size, 0)
    strides = [itemsize]
    for length in reversed(lengths[1:]):
        strides.insert(0, builder.mul(strides[0], length))
    array = make_array(kind)(context, builder)
    populate_array(
        array,
        data=builder.bitcast(data, context.get_data_type(kind.dtype).as_pointer()),
        shape=cgutils.pack_array(builder, lengths, ty=WORD),
        strides=cgutils.pack_array(builder, strides[: kind.ndim], ty=WORD),
        itemsize=itemsize,
        meminfo=info,
    )
    value = array._getvalue()
    context.nrt.incref(builder, kind, value)
    return impl_ret_new_ref(context, builder, kind, value)


@lower("ScratchBuffer.empty", ScratchBufferType, types.Any, types.VarArg(types.Any))
def _empty(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _array(context, builder, sig, args, zero=False)


@lower("ScratchBuffer.zeros", ScratchBufferType, types.Any, types.VarArg(types.Any))
def _zeros(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _array(context, builder, sig, args, zero=True)


@lower("ScratchBuffer.mark", ScratchBufferType)
def _mark(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
    """Open a frame, and return it."""
    (cursor,) = args
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


@lower("ScratchBuffer.rewind", ScratchBufferType, MarkType)
def _rewind(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
    """Close a frame and all frames inside it.

    Numba removes a pair of incref and decref if there is no decref between them. That would hide an array that is used
    after the rewind; so the slow path contains a decref of nothing, which the compiler cannot know.
    """
    cursor, frame = args
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
    return context.get_dummy_value()


@lower("ThreadBuffers.local", ThreadBuffersType)
def _local(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
    number = context.compile_internal(builder, lambda: types.intp(get_thread_id()), signature(types.intp), ())
    cursor = call(builder, "local", BYTES, args[0], number)
    unless_null(context, builder, cursor)
    return cursor
