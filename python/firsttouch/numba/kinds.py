"""Numba types of buffers and marks, and what compiled code may do with them."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import errors, types
from numba.core.datamodel import models
from numba.core.imputils import lower_constant
from numba.extending import NativeValue, box, register_model, typeof_impl, unbox

from firsttouch import _firsttouch
from firsttouch.numba import native


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
    """One buffer for each thread of a parallel loop."""

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


class _MarkModel(models.StructModel):  # type: ignore[misc]
    """The values that ``instructions.mark`` returns."""

    def __init__(self, manager: Any, kind: Any) -> None:
        fields = [("frame", types.voidptr), ("generation", types.intp), ("outer", types.voidptr), ("top", types.intp)]
        super().__init__(manager, kind, fields)

    def _stays(self) -> Any:
        raise errors.UnsupportedError(
            "a mark stays in the function that made it: it cannot be an argument or a result, be kept in a list or by "
            "a generator, or go into a prange loop; let each function mark and rewind for itself"
        )

    get_data_type = get_argument_type = get_return_type = _stays


def _unboxer(name: str) -> Any:
    def unboxed(_kind: Any, obj: Any, c: Any) -> Any:
        cursor = native.call(c.builder, f"enter{name}", native.BYTES, obj)

        def leave() -> None:
            native.call(c.builder, f"leave{name}", ir.VoidType(), obj)

        failed = c.builder.icmp_unsigned("==", cursor, native.BYTES(None))
        return NativeValue(cursor, is_error=failed, cleanup=leave)

    return unboxed


def _boxed(_kind: Any, value: Any, c: Any) -> Any:
    return native.call(c.builder, "object", c.pyapi.pyobj, value)


def _constant(_context: Any, _builder: Any, kind: Any, _value: Any) -> Any:
    raise errors.UnsupportedError(
        f"a {kind} cannot be a global variable of compiled code, because its address differs in every process: "
        "pass it as an argument"
    )


def register() -> None:
    """Register the types with Numba."""
    register_model(ScratchBufferType)(_BufferModel)
    register_model(ThreadBuffersType)(_BuffersModel)
    register_model(MarkType)(_MarkModel)
    unbox(ScratchBufferType)(_unboxer(""))
    unbox(ThreadBuffersType)(_unboxer("_all"))
    box(ScratchBufferType)(_boxed)
    for kind in (ScratchBufferType, ThreadBuffersType):
        lower_constant(kind)(_constant)
    typeof_impl.register(_firsttouch.NumbaBuffers)(lambda _value, _context: thread_buffers)
