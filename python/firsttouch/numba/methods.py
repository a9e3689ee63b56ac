"""The methods of buffers in compiled code: ``mark``, ``rewind``, ``empty``, ``zeros``; of ThreadBuffers ``local``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_new_ref
from numba.core.typing.templates import signature
from numba.extending import infer_getattr, lower_builtin
from numba.np.arrayobj import get_itemsize, make_array, populate_array
from numba.np.ufunc.parallel import get_thread_id

from firsttouch.numba import instructions, native
from firsttouch.numba.kinds import MarkType, ScratchBufferType, ThreadBuffersType, scratch_mark
from firsttouch.numba.native import WORD
from firsttouch.numba.signatures import BufferMethods, BuffersMethods


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
        native.call(builder, "bad_shape", ir.VoidType(), at, WORD(len(lengths)), itemsize)
        native.call(builder, "failed", ir.VoidType(), cursor)
        native.fail(context, builder, 4)
    return lengths, size


def _array(context: Any, builder: Any, sig: Any, args: Any, zero: bool) -> Any:
    kind = sig.return_type
    itemsize = context.get_constant(types.intp, get_itemsize(context, kind))
    lengths, size = _sizes(context, builder, args[0], sig.args[1], args[1], itemsize)
    data, info = instructions.allocate(context, builder, args[0], size)
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
    result = cgutils.create_struct_proxy(scratch_mark)(context, builder)
    result.frame, result.generation, result.outer, result.top = instructions.mark(context, builder, args[0])
    return result._getvalue()


def _rewind(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
    given = cgutils.create_struct_proxy(scratch_mark)(context, builder, value=args[1])
    instructions.rewind(context, builder, args[0], given)
    return context.get_dummy_value()


def _local(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
    number = context.compile_internal(builder, lambda: types.intp(get_thread_id()), signature(types.intp), ())
    cursor = native.call(builder, "local", native.BYTES, args[0], number)
    native.unless_null(context, builder, cursor, 3)
    return cursor


def register() -> None:
    """Register the methods with Numba."""
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
