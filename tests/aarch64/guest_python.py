"""What Python does in a guest: arrays of every kind, installed and not, and a program under the preloaded library."""

import mmap
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import firsttouch as ft


def arrays() -> None:
    """Zeros read zero, fresh and recycled, at sizes around those of pages; each allocator keeps what is written."""
    sizes = [1, 4095, 16384, 65536, 1 << 20, (16 << 20) + 8, (40 << 20) + 8]
    pages = (ft.pages(), ft.pages(huge="thp"))
    for allocator in (*pages, ft.pool(), *map(ft.pool, pages), ft.jemalloc(), ft.mimalloc()):
        for size in sizes * 2:
            with ft.use(allocator):
                zeros, ones = np.zeros(size, np.uint8), np.ones(size, np.uint8)
            assert size < 1 << 16 or zeros.ctypes.data % 64 == 0, allocator
            assert not zeros.any(), (allocator, size)
            assert ones.all(), (allocator, size)
            zeros += 3
            assert int(zeros.sum()) == 3 * size, (allocator, size)


def installed() -> None:
    """A loop is served from what it freed."""
    pool = ft.pool()
    ft.install(pool)
    a = np.ones(1 << 20)
    for _ in range(20):
        a = a * 0.5 + 1.0
    assert abs(float(a[0]) - 2.0) < 1e-5
    assert ft.is_installed()
    assert ft.stats(pool).recycled > 10
    ft.uninstall()


def scratch() -> None:
    """A scratch buffer in a loop."""
    with ft.scratch(ft.ScratchBuffer()) as scope:
        for size in (10, 100_000, 3_000_000):
            assert scope.full(size, 2.0).sum() == 2.0 * size


def preloaded() -> None:
    """The library behind `firsttouch run`, in a Python that knows nothing of it."""
    library = str(Path(ft.__file__).parent / "_lib/libfirsttouch_preload.so")
    program = (
        "b = [bytearray(n << 20) for n in (1, 20, 70)]; assert not any(map(any, b)); print(sum(map(len, b)) >> 20)"
    )
    environment = {**os.environ, "LD_PRELOAD": library}
    program += "; print('preload.so' in open('/proc/self/maps').read())"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["91", "True"], done


if __name__ == "__main__":
    print(
        f"Python {sys.version.split()[0]}, NumPy {np.__version__}, firsttouch {ft.__version__}, pages {mmap.PAGESIZE}"
    )
    for test in (arrays, installed, scratch, preloaded):
        test()
        print(f"test {test.__name__} ... ok", flush=True)
    print("test result: ok. 4 passed; 0 failed; 0 ignored")
