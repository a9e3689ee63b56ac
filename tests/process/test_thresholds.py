"""The C library's own thresholds stay where NumPy's arrays would have put them."""

import platform

import pytest

from tests.programs import ask

pytestmark = [
    pytest.mark.quick,
    pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has thresholds that follow frees"),
]

CODE = """
import ctypes, json, resource
import numpy as np
import firsttouch as ft

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
MIB = 1 << 20

def is_mapped(size):
    block = libc.malloc(size)
    words = ctypes.c_size_t.from_address(block - 8).value  # of the chunk: its size, and bits
    # Not freed: that would raise the thresholds itself.
    return bool(words & 2)

ft.install()
told = [is_mapped(3 * MIB)]
"""


def test_they_follow_arrays_that_the_c_library_does_not_see() -> None:
    assert ask(
        CODE + "np.empty(4 * MIB, np.uint8); told += [is_mapped(3 * MIB), is_mapped(9 * MIB)]; print(json.dumps(told))"
    ) == [
        True,
        False,
        True,
    ]


def test_they_do_not_follow_what_the_c_library_would_map_in_any_case() -> None:
    assert ask(CODE + "np.empty(33 * MIB, np.uint8); print(json.dumps(told + [is_mapped(3 * MIB)]))") == [True, True]


def test_an_array_that_grows_moves_them_in_few_steps() -> None:
    code = (
        CODE
        + """
np.empty(MIB, np.uint8)
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for size in range(MIB, 2 * MIB, 4096):
    np.empty(size, np.uint8)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults)
"""
    )
    assert ask(code) < 50
