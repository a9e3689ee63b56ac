"""Buffers and marks as Numba knows them: their types, what may be done with them, and the code of their methods."""

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
from firsttouch.numba import native
from firsttouch.numba.native import WORD


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

    def __init__(self) -> None:
        super().__init__("ScratchBuffer")


class ThreadBuffersType(_Type):
    """A buffer that the threads of a parallel loop share."""

    def __init__(self) -> None:
        super().__init__("ThreadBuffers")


class MarkType(_Type):
    """A position in a buffer. It cannot leave the call that made it, which makes rewinding safe."""

    def __init__(self) -> None:
        super().__init__("ScratchMark")


scratch_buffer = ScratchBufferType()


thread_buffers = ThreadBuffersType()


scratch_mark = MarkType()


class _BufferModel(models.PrimitiveModel):  # type: ignore[misc]
    """The address of a cursor."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, native.BYTES)

    def get_data_type(self) -> Any:
        raise errors.UnsupportedError(
            "a ScratchBuffer cannot be kept in a list, a dict, an object or a generator, nor shared by the threads of "
            "a prange loop: pass it as an argument; for prange pass a firsttouch.numba.ThreadBuffers and take "
            "buffers.local() inside the loop"
        )


class _BuffersModel(models.PrimitiveModel):  # type: ignore[misc]
    """The address of a list of cursors."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, native.BYTES)


class _MarkModel(models.PrimitiveModel):  # type: ignore[misc]
    """The address of a frame."""

    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, native.BYTES)

    def _stays(self) -> Any:
        raise errors.UnsupportedError(
            "a mark stays in the function that made it: it cannot be an argument or a result, be kept in a list or by "
            "a generator, or go into a prange loop; let each function mark and rewind for itself"
        )

    get_data_type = get_argument_type = get_return_type = _stays


def _unboxer(name: str) -> Any:
    def unboxed(_kind: Any, obj: Any, c: Any) -> Any:
        entered = native.call(c.builder, f"enter{name}", native.BYTES, obj)

        def leave() -> None:
            native.call(c.builder, f"leave{name}", ir.VoidType(), entered)

        failed = c.builder.icmp_unsigned("==", entered, native.BYTES(None))
        return NativeValue(entered, is_error=failed, cleanup=leave)

    return unboxed


def _boxed(_kind: Any, value: Any, c: Any) -> Any:
    return native.call(c.builder, "object", c.pyapi.pyobj, value)


def _constant(_context: Any, _builder: Any, kind: Any, _value: Any) -> Any:
    raise errors.UnsupportedError(
        f"a {kind} cannot be a global variable of compiled code, because its address differs in every process: "
        "pass it as an argument"
    )


def register() -> None:
    """Register the types and their methods with Numba."""
    register_model(ScratchBufferType)(_BufferModel)
    register_model(ThreadBuffersType)(_BuffersModel)
    register_model(MarkType)(_MarkModel)
    unbox(ScratchBufferType)(_unboxer(""))
    unbox(ThreadBuffersType)(_unboxer("_all"))
    box(ScratchBufferType)(_boxed)
    for kind in (ScratchBufferType, ThreadBuffersType):
        lower_constant(kind)(_constant)
    typeof_impl.register(_firsttouch.NumbaBuffers)(lambda _value, _context: thread_buffers)
    _register_methods()


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


class BuffersMethods(AttributeTemplate):  # type: ignore[misc]
    """The methods of ThreadBuffers."""

    key = ThreadBuffersType

    def _local(self, _kind: Any, args: Any, kws: Any) -> Any:
        return signature(scratch_buffer) if not args and not kws else None

    resolve_local = bound_function("ThreadBuffers.local")(_local)


def _sizes(context: Any, builder: Any, cursor: Any, kind: Any, shape: Any, itemsize: Any) -> tuple[list[Any], Any]:
    """Return the validated shape of an array and its size in bytes."""
    pairs = (
        [(kind, shape)]
        if isinstance(kind, types.Integer)
        else list(zip(kind, cgutils.unpack_tuple(builder, shape, count=len(kind)), strict=True))
    )
    lengths = [context.cast(builder, value, each, types.intp) for each, value in pairs]
    size, bad = itemsize, ir.IntType(1)(0)
    for length in lengths:
        product = builder.smul_with_overflow(size, length)
        size = builder.extract_value(product, 0)
        negative = builder.icmp_signed("<", length, WORD(0))
        bad = builder.or_(bad, builder.or_(negative, builder.extract_value(product, 1)))
    with builder.if_then(bad, likely=False):
        dims = cgutils.pack_array(builder, lengths, ty=WORD)
        at = builder.bitcast(cgutils.alloca_once_value(builder, dims), native.BYTES)
        native.call(builder, "bad_shape", ir.VoidType(), cursor, at, WORD(len(lengths)), itemsize)
        native.fail(context, builder)
    return lengths, size


def _array(context: Any, builder: Any, sig: Any, args: Any, zero: bool) -> Any:
    kind = sig.return_type
    itemsize = context.get_constant(types.intp, get_itemsize(context, kind))
    lengths, size = _sizes(context, builder, args[0], sig.args[1], args[1], itemsize)
    data, info = native.allocate(context, builder, args[0], size)
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


def _empty(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _array(context, builder, sig, args, zero=False)


def _zeros(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return _array(context, builder, sig, args, zero=True)


def _mark(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
    return native.mark(context, builder, args[0])


def _rewind(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
    native.rewind(context, builder, *args)
    return context.get_dummy_value()


def _local(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
    number = context.compile_internal(builder, lambda: types.intp(get_thread_id()), signature(types.intp), ())
    cursor = native.call(builder, "local", native.BYTES, args[0], number)
    native.unless_null(context, builder, cursor)
    return cursor


def _register_methods() -> None:
    infer_getattr(BufferMethods)
    infer_getattr(BuffersMethods)
    implementations: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "empty": (_empty, (types.Any, types.VarArg(types.Any))),
        "zeros": (_zeros, (types.Any, types.VarArg(types.Any))),
        "mark": (_mark, ()),
        "rewind": (_rewind, (MarkType,)),
    }
    for name, (implementation, kinds) in implementations.items():
        lower_builtin(f"ScratchBuffer.{name}", ScratchBufferType, *kinds)(implementation)
    lower_builtin("ThreadBuffers.local", ThreadBuffersType)(_local)
