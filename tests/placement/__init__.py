"""Where arrays are placed, and what the receipts say."""

import ctypes
import re
from mmap import PAGESIZE
from pathlib import Path

import numpy as np

import firsttouch as ft

_C = ctypes.CDLL(None)


def granted(array: np.ndarray) -> ft.placement.Receipt:
    """The receipt of an array that has one."""
    found = ft.receipt(array)
    assert found is not None
    return found


def there(array: np.ndarray) -> int:
    """Bytes of an array's pages that are resident.

    Without core dumps they are a mapping of their own for a moment, of which the kernel tells that; it may have merged
    theirs with a neighbour's.
    """
    start = array.ctypes.data // PAGESIZE * PAGESIZE
    end = -(-(array.ctypes.data + array.nbytes) // PAGESIZE) * PAGESIZE
    pages = ctypes.c_void_p(start), ctypes.c_size_t(end - start)
    assert _C.madvise(*pages, 16) == 0  # MADV_DONTDUMP
    smaps = Path("/proc/self/smaps").read_text()
    assert _C.madvise(*pages, 17) == 0  # MADV_DODUMP
    found = re.search(rf"^{start:x}-{end:x} .*?^Rss: +(\d+) kB", smaps, re.MULTILINE | re.DOTALL)
    assert found is not None
    return int(found[1]) * 1024
