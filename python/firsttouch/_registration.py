"""Registers with the native module, once, the Python functions that it calls, and attaches methods written in Python.

It imports none of our modules itself.
"""

import threading

from firsttouch import _firsttouch, arrays
from firsttouch._firsttouch import Allocator, Buffer
from firsttouch._internal import display, memory_error
from firsttouch.buffers import compiled, decorating, outcome
from firsttouch.placement import pools
from firsttouch.placement.bar import bar


def _attach(kind: type, name: str, value: object) -> None:
    if not hasattr(kind, name):
        setattr(kind, name, value)


_firsttouch.register(
    empty=arrays.empty,
    zeros=arrays.zeros,
    buffer_upstream=pools.buffer_upstream,
    storage=pools.storage,
    buffer_or_function=decorating.buffer_or_function,
    function=decorating.function,
    dress=decorating.dress,
    note=outcome.note,
    report=outcome.report,
    add_reason=memory_error.add_reason,
    main_thread=threading.main_thread,
    threads=threading.enumerate,
)
_firsttouch.set_bar(bar)
for _name, _method in arrays.METHODS.items():
    _attach(Allocator, _name, _method)
_attach(Allocator, "_repr_html_", display.html_of)
_attach(Allocator, "_repr_pretty_", display.pretty)
_attach(Buffer, "_numba_type_", property(compiled.numba_type))
