"""Bytes, text and compression in pure Python: nothing here is NumPy's."""

import hashlib
import os
import time
import zlib
from array import array


def work() -> str:
    """Return a digest of everything that was made."""
    found = hashlib.blake2b()
    for turn in range(5):
        numbers = array("d", range(turn, 300_000 + turn))
        data = numbers.tobytes()
        packed = zlib.compress(data, 1)
        text = data.hex()
        grown = bytearray()
        for start in range(0, len(text), 60_000):
            grown += text[start : start + 60_000].encode()
        found.update(bytes(reversed(grown)))
        found.update(zlib.decompress(packed)[::-1])
        found.update("".join(text.split("00")).encode())
    return found.hexdigest()


print(work())
if os.environ.get("REST"):
    time.sleep(2)
    with open("/proc/self/statm") as file:
        print(int(file.read().split()[1]) * 4)
