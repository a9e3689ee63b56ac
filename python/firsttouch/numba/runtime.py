"""Connects the native module with Numba: the address of its runtime, and names for the linker of compiled code."""

import re
from importlib.metadata import version

OLDEST = (0, 60)


def load() -> None:
    """Joins the two; once is enough.

    Raises:
        ImportError: without Numba, or with one that is too old.

    """
    wanted = f"firsttouch.numba needs Numba {OLDEST[0]}.{OLDEST[1]} or newer"
    try:
        import numba  # noqa: F401 - the import is the test
    except ImportError as error:
        raise ImportError(f"{wanted}, which cannot be imported here ({error}): pip install numba") from error
    found = version("numba")
    if tuple(int(number) for number in re.findall(r"\d+", found)[:2]) < OLDEST:
        raise ImportError(f"{wanted}; this is Numba {found}: pip install --upgrade numba")

    from llvmlite import binding
    from numba.core.runtime import _nrt_python

    from firsttouch import _firsttouch

    for name, address in _firsttouch.numba_setup(_nrt_python.c_helpers["get_api"]).items():
        binding.add_symbol(name, address)
