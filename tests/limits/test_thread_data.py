"""Without memory the purger's thread gives nothing back to mimalloc or jemalloc: glibc would need some first."""

import sys

import pytest

from tests.programs import run

PROGRAM = """
import ctypes, resource, time
import firsttouch as ft

pool = ft.pool({upstream!r}, decay=0.3)
arrays = [pool.empty(300_000, "u1") for _ in range(20)]
arrays.clear()
idle = ft.stats(pool).idle

c = ctypes.CDLL(None)
c.malloc.restype, c.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
with open("/proc/self/statm") as statm:
    used = int(statm.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used, -1))
size = 1 << 20
while size >= 16:
    if not c.malloc(size):
        size //= 2
time.sleep(1)
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
assert ft.stats(pool).idle == idle > 0
end = time.monotonic() + 30
while ft.stats(pool).idle:
    assert time.monotonic() < end, "nothing is given back once there is memory"
    time.sleep(0.1)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="where the address space can be limited")
@pytest.mark.parametrize("upstream", ["mimalloc()", "jemalloc()", "tracked(mimalloc())"])
def test_idle_memory_stays_until_there_is_memory_to_give_it_back(upstream: str) -> None:
    run(PROGRAM.format(upstream=upstream))
