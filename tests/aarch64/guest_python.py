"""A program under the preloaded library, in a Python of a guest that knows nothing of it."""

import mmap
import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import firsttouch as ft

PROGRAM = """
b = [bytearray(n << 20) for n in (1, 20, 70)]
assert not any(map(any, b))
print(sum(map(len, b)) >> 20, "preload.so" in open("/proc/self/maps").read())
"""

if __name__ == "__main__":
    print(f"Python {sys.version.split()[0]}, NumPy {np.__version__}, pages {mmap.PAGESIZE}")
    library = str(Path(ft.__file__).parent / "_lib/libfirsttouch_preload.so")
    environment = {**os.environ, "LD_PRELOAD": library}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["91", "True"], done
    print("test preloaded ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored")
