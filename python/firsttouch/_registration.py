"""Registers with the native module the functions of scratch memory that it calls."""

import threading

from firsttouch import _firsttouch
from firsttouch._firsttouch import Buffer
from firsttouch.buffers import compiled, decorating, outcome

_firsttouch.register(
    buffer_or_function=decorating.buffer_or_function,
    function=decorating.function,
    dress=decorating.dress,
    note=outcome.note,
    report=outcome.report,
    main_thread=threading.main_thread,
    threads=threading.enumerate,
)
if not hasattr(Buffer, "_numba_type_"):
    Buffer._numba_type_ = property(compiled.numba_type)  # type: ignore[attr-defined]
