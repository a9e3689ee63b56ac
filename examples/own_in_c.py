"""A custom allocator in C: `from_functions` takes addresses, and calls them without Python or its lock.

So the allocator can be installed for the whole process, and any thread may call it. Here ctypes finds the addresses in
counting.c; cffi, Cython and Numba (own_in_numba.py) work as well.
"""

import ctypes
import os
import subprocess
import tempfile
from pathlib import Path

import numpy as np

import firsttouch as ft


class Counts(ctypes.Structure):
    """The context that is passed to the functions."""

    _fields_ = (("allocations", ctypes.c_longlong), ("frees", ctypes.c_longlong))


def built() -> ctypes.CDLL:
    """Compile counting.c into a temporary folder, and load the library."""
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder, "counting.so")
        source = Path(__file__).with_name("counting.c")
        subprocess.run([os.environ.get("CC", "cc"), "-O2", "-shared", "-fPIC", "-o", library, source], check=True)
        return ctypes.CDLL(str(library))


def address(function: object) -> int:
    """Return the address of a function of ctypes."""
    found = ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]
    assert found is not None
    return found


def main() -> None:
    """Count the arrays of an expression."""
    library, counts = built(), Counts()  # both live as long as the process, because arrays need them to the end
    counting = ft.allocators.from_functions(
        malloc=address(library.counting_malloc),
        calloc=address(library.counting_calloc),
        free=address(library.counting_free),
        context=ctypes.addressof(counts),
    )

    squares = ft.empty(10, np.int64, allocator=counting)
    squares[:] = np.arange(10) ** 2
    print(squares, "at a multiple of 64 bytes:", squares.ctypes.data % 64 == 0)

    with ft.use(counting):
        x = np.linspace(0.0, 1.0, 1_000_000)
        y = (x - x.mean()) / x.std()
    print("mean and deviation:", abs(y.mean()).round(9), y.std().round(9))

    del squares, x, y
    print("allocations and frees are even:", counts.allocations == counts.frees, "and more than 5:", counts.frees > 5)


if __name__ == "__main__":
    main()
