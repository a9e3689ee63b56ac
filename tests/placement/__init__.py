"""Where arrays are placed, and what the receipts say."""

import re

import numpy as np

import firsttouch as ft


def granted(array: np.ndarray) -> ft.placement.Receipt:
    """The receipt of an array that has one."""
    found = ft.receipt(array)
    assert found is not None
    return found


def there(array: np.ndarray) -> int:
    """Bytes of an array's whole pages that are resident."""
    start = array.ctypes.data
    total = 0
    with open("/proc/self/smaps") as file:
        inside = False
        for line in file:
            if found := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
                low, high = (int(part, 16) for part in found.groups())
                inside = low < start + array.nbytes and start < high
            elif inside and line.startswith("Rss:"):
                total += int(line.split()[1]) * 1024
    return total
