"""The C library's own thresholds stay where NumPy's arrays would have put them."""

import platform

import pytest

from firsttouch.tools.measuring.contenders import library
from tests.programs import ask

pytestmark = [
    pytest.mark.quick,
    pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has thresholds that follow frees"),
]

BEGIN = """
import ctypes, json, resource
import numpy as np
import firsttouch as ft
from tests.probe import status

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]
MIB = 1 << 20

def is_mapped(size):
    block = libc.malloc(size)
    words = ctypes.c_size_t.from_address(block - 8).value  # of the chunk: its size, and bits
    # Not freed: that would raise the thresholds itself.
    return bool(words & 2)

ft.install()
"""


def test_they_follow_arrays_that_the_c_library_does_not_see_once_these_are_freed() -> None:
    code = """
# Of glibc alone: another malloc may have nothing before a block, not even memory.
told = [is_mapped(3 * MIB)]
kept = [np.empty(4 * MIB, np.uint8) for _ in range(4)]
told.append(is_mapped(3 * MIB))
kept.clear()
np.empty(MIB)
told += [is_mapped(3 * MIB), is_mapped(9 * MIB)]
print(json.dumps(told))
"""
    assert ask(BEGIN + code) == [True, True, False, True]


GROWS = (
    BEGIN
    + """
def grow():
    for mebibytes in range(2, 32, 2):
        np.empty(mebibytes * MIB, np.uint8)
    ft.trim()
"""
)


def test_another_malloc_is_not_asked_for_blocks_that_nobody_uses() -> None:
    path = library("jemalloc")
    if path is None:
        pytest.skip("jemalloc is not installed")
    code = GROWS + "np.empty(40 * MIB, np.uint8); before = status('VmSize'); grow(); print(status('VmSize') - before)"
    assert ask(code, env={"LD_PRELOAD": str(path)}) < 16 << 20


#: From now on glibc takes such blocks from its heap, and keeps them there.
RAISED = "libc.free(libc.malloc(30 * MIB)); np.empty(40 * MIB, np.uint8); ft.trim()"


@pytest.mark.parametrize("limit", ["RLIMIT_AS", "RLIMIT_DATA"])
def test_limited_address_space_is_left_to_the_program(limit: str) -> None:
    code = (
        GROWS
        + f"""
resource.setrlimit(resource.{limit}, (16 << 30, 16 << 30))
{RAISED}
before = status("VmData"); grow(); print(status("VmData") - before)
"""
    )
    assert ask(code) < 16 << 20
