"""Real explicit huge pages: a few are reserved for each test, if that is permitted, and released afterwards."""

import json
import mmap
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import firsttouch as ft
from tests.limits.cgroups import group
from tests.placement import granted
from tests.programs import execute, quiet, start

MIB = 1 << 20
POOLS = Path("/sys/kernel/mm/hugepages")


def pool(kib: int) -> Path:
    return POOLS / f"hugepages-{kib}kB"


def free(kib: int) -> int:
    return int((pool(kib) / "free_hugepages").read_text())


def reserved(kib: int, count: int) -> Iterator[None]:
    number = pool(kib) / "nr_hugepages"
    try:
        before = number.read_text()
        number.write_text(str(int(before) + count))
    except OSError as why:
        pytest.skip(f"huge pages can't be reserved here: {why}")
    try:
        if free(kib) < count:
            pytest.skip(f"the kernel finds no room for {count} huge pages of {kib} KiB")
        yield
    finally:
        number.write_text(before)


@pytest.fixture
def four() -> Iterator[None]:
    """Four huge pages of 2 MiB."""
    yield from reserved(2048, 4)


@pytest.mark.usefixtures("four")
def test_pages_of_2_mib_are_granted_and_go_back() -> None:
    before = free(2048)
    array = ft.pages("2M", strict=True).zeros(6 * MIB - 100, np.uint8)
    receipt = granted(array)
    assert (receipt.huge, receipt.mapped, receipt.why_not) == ("2M", 6 * MIB, ())
    assert array.ctypes.data % (2 * MIB) == 0
    array[:] = 7
    assert free(2048) == before - 3
    found = ft.inspect(array)
    assert (found.huge, found.small, found.absent) == (6 * MIB, 0, 0)
    del array
    assert free(2048) == before


@pytest.fixture
def many() -> Iterator[None]:
    """More than a small container has of other memory."""
    yield from reserved(2048, 48)


@pytest.mark.usefixtures("many")
def test_touching_them_takes_no_other_memory() -> None:
    program = """
        array = ft.pages("2M", strict=True).empty(96 << 20, "u1")
        ft.touch(array)
        print(ft.inspect(array).huge >> 20)
        """
    with group(limit=96 * MIB) as place:
        assert quiet(start(program, preexec_fn=place.enter)) == "96\n"


@pytest.mark.usefixtures("four")
def test_on_a_node_they_are_real_at_once_and_pools_keep_them() -> None:
    pool = ft.pool(ft.pages("2M", numa=0, strict=True))
    array = pool.ones(4 * MIB, np.uint8)
    address, left = array.ctypes.data, free(2048)
    del array
    assert pool.zeros(4 * MIB, np.uint8).ctypes.data == address
    assert free(2048) == left


SWITCHED_OFF = """
import numpy as np
import firsttouch as ft
pool = ft.pool()
kept = [pool.ones(1 << 20) for _ in range(8)]
print(ft.stats(pool).first_touched_huge_bytes, {ft.receipt(each).huge for each in kept})
print(*ft.receipt(ft.pages("thp").ones(1 << 20)).why_not)
"""


def test_there_are_none_where_they_are_switched_off(tmp_path: Path) -> None:
    (tmp_path / "enabled").write_text("always madvise [never]\n")
    mount = 'mount --bind "$0" /sys/kernel/mm/transparent_hugepage/enabled && exec "$@"'
    words = ("unshare", "--user", "--map-root-user", "--mount", "sh", "-c", mount)
    if shutil.which("unshare") is None or execute(*words, tmp_path / "enabled", "true").returncode:
        pytest.skip("the file cannot be replaced here")
    of_pool, why_not = quiet(execute(*words, tmp_path / "enabled", sys.executable, "-c", SWITCHED_OFF)).splitlines()
    assert (of_pool, "said never" in why_not) == ("0 {None}", True)
    turns = "import numpy as np\nfor _ in range(20): np.ones(5 << 20)"  # 40 MiB, which glibc maps in each turn
    command = (sys.executable, "-m", "firsttouch", "run", "--json", tmp_path / "report", "-c", turns)
    execute(*words, tmp_path / "enabled", *command)
    assert json.loads((tmp_path / "report").read_text())["gain"]["faults"] > 10 * 40 * MIB // mmap.PAGESIZE
