"""Without memory the purger's thread gives nothing back to mimalloc or jemalloc: glibc would end the process."""

import sys

import pytest

from tests.programs import run

POOL = """
pool = ft.pool({upstream!r}, decay=0.3)
arrays = [pool.empty(300_000, "u1") for _ in range(20)]
arrays.clear()

def idle():
    return ft.stats(pool).idle
"""

BUFFER = """
buffer = ft.ScratchBuffer("64 KiB", {upstream!r})
with ft.scratch(buffer) as scope:
    arrays = [scope.empty(8000, "u1") for _ in range(200)]
    del arrays

def idle():
    return max(buffer.capacity - 4 * 65536, 0)
"""

PROGRAM = """
import ctypes, resource, time
import firsttouch as ft
{makes}
before = idle()
c = ctypes.CDLL(None)
c.malloc.restype, c.malloc.argtypes = ctypes.c_void_p, (ctypes.c_size_t,)
with open("/proc/self/statm") as statm:
    used = int(statm.read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used, -1))
size = 1 << 20
while size >= 16:
    if not c.malloc(size):
        size //= 2
time.sleep(2)
resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
assert idle() == before > 0, (idle(), before)
end = time.monotonic() + 30
while idle():
    assert time.monotonic() < end, "nothing is given back once there is memory"
    time.sleep(0.1)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="where the address space can be limited")
@pytest.mark.parametrize(
    ("makes", "upstream"),
    [(POOL, "mimalloc()"), (POOL, "tracked(jemalloc())"), (BUFFER, "jemalloc()")],
    ids=["pool", "tracked", "buffer"],
)
def test_idle_memory_stays_until_there_is_memory_to_give_it_back(makes: str, upstream: str) -> None:
    run(PROGRAM.format(makes=makes.format(upstream=upstream)))
