"""No public name ends the process when out of memory: it works or raises `MemoryError`, and works afterwards."""

import sys

import pytest

import firsttouch as ft
from tests.memory_out.operations import NO_OPERATIONS, OPERATIONS
from tests.programs import execute

#: Where CPython 3.13.0 or NumPy fail by themselves: in a call with `**`, in `__setattr__` of
#: a frozen dataclass, in `marshal` under an import, in `frombuffer`, in what reads `__array_interface__`.
THEIRS = {"inspect str", "inspect pagemap", "receipt", "share", "stats", "stats str", "touch"}


def test_every_public_name_is_there() -> None:
    assert {name.split()[0] for name in OPERATIONS} | NO_OPERATIONS >= {*ft.__all__, "array", "inspect"}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("whose", ["ours", "python's"])
def test_out_of_memory(whose: str) -> None:
    if whose == "python's":
        pytest.importorskip("_testcapi")
    names = [name for name in OPERATIONS if whose == "ours" or name not in THEIRS]
    command = (sys.executable, "-X", "faulthandler", "-m", "tests.memory_out.failing", whose, *names)
    done = execute(*command, timeout=840)
    failed = [line for line in done.stdout.splitlines() if "FAILED" in line]
    assert (done.returncode, failed) == (0, []), f"{done.stdout[-4000:]}\n{done.stderr[-4000:]}"
