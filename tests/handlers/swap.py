"""Installs a custom handler behind NumPy's default capsule, as a C program would."""

import ctypes
from typing import Any, ClassVar

from numpy._core import multiarray


class Handler(ctypes.Structure):
    """NumPy's PyDataMem_Handler."""

    _fields_: ClassVar[list[Any]] = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("ctx", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    ]


_api = ctypes.pythonapi
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_SetPointer.argtypes = [ctypes.py_object, ctypes.c_void_p]


def _default_capsule() -> Any:
    table = _api.PyCapsule_GetPointer(multiarray._ARRAY_API, None)
    slot = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[306]
    assert slot is not None
    return ctypes.cast(slot, ctypes.POINTER(ctypes.py_object)).contents.value


def default() -> int:
    """The address of the handler behind the default capsule."""
    return int(_api.PyCapsule_GetPointer(_default_capsule(), b"mem_handler"))


def swap(to: Handler | int) -> int:
    """Puts a handler there, which the caller keeps, or one at an address; the address of the one before."""
    before = default()
    assert _api.PyCapsule_SetPointer(_default_capsule(), to if isinstance(to, int) else ctypes.addressof(to)) == 0
    return before


def copy(**changes: Any) -> Handler:
    """The handler that is there, with some fields changed."""
    made = Handler.from_buffer_copy(ctypes.string_at(default(), ctypes.sizeof(Handler)))
    for name, value in changes.items():
        setattr(made, name, value)
    return made
