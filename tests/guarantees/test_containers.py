"""Containers, on real memory cgroups: see the page. Where no cgroup can be made, these are skipped."""

import json
import re
import signal
import sys
from pathlib import Path

import pytest

from tests.limits.cgroups import Group, group
from tests.programs import Finished, execute, run

MIB = 1 << 20
PROLOGUE = f"import numpy as np\nimport firsttouch as ft\nfrom tests import probe\nMIB = {MIB}\n"


def inside(place: Group, program: str) -> str:
    """What a program prints in a cgroup in which it must end well."""
    return run(program, prologue=PROLOGUE, preexec_fn=place.enter)


def test_the_budget_auto_is_less_than_what_the_container_has_left() -> None:
    with group(limit=512 * MIB) as place:
        text = inside(place, "print(ft.limited())")
    found = int(text.partition("at_most=")[2].rstrip(")\n"))
    assert 256 * MIB < found <= (512 - 64) * MIB


WAYS = {
    "one size": "np.ones(5 * MIB, np.uint8)",
    "many sizes": "np.ones(20_000 + len(kept) * 79_999 % (6 * MIB), np.uint8)",
    "zeros that are touched": "np.zeros(3 * MIB, np.uint8) + 1",
    "one large": "np.ones((1 + len(kept)) * 20 * MIB, np.uint8)",
}


@pytest.mark.parametrize(
    ("how", "limit"), [*((how, 160 * MIB) for how in WAYS.values()), (WAYS["many sizes"], 400 * MIB)]
)
def test_a_program_under_the_budget_auto_gets_a_memoryerror_and_is_not_killed(
    how: str, limit: int, tmp_path: Path
) -> None:
    script = tmp_path / "grows.py"
    script.write_text(f"""
import numpy as np
MIB, kept = {MIB}, []
def grow():
    kept.append({how})
try:
    while True:
        grow()
except MemoryError as error:
    caught = error
print(sum(array.nbytes for array in kept), flush=True)
for turn in range(3):  # recycled, without the largest
    del kept[::2]
    try:
        while True:
            grow()
    except MemoryError:
        pass
kept.clear()
raise caught
""")
    with group(limit=limit) as place:
        finished = under_a_budget(script, place, "--json", "report.json")
    assert finished.returncode == 1, finished
    assert int(finished.stdout) > limit // 4
    assert "MemoryError: Unable to allocate" in finished.stderr
    assert f"the memory cgroup allows {limit >> 20} MiB, of which " in finished.stderr
    assert "the largest living blocks:" in finished.stderr
    assert f"{script}:5" in finished.stderr
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["allocator"].startswith("limited(at_most=")


def under_a_budget(script: Path, place: Group, *flags: str) -> Finished:
    """A program under `firsttouch run --limit auto` in a cgroup."""
    command = [sys.executable, "-m", "firsttouch", "run", "-q", "--limit", "auto", *flags, script]
    return execute(*command, cwd=script.parent, preexec_fn=place.enter)


def test_after_the_kernel_has_killed_a_program_with_a_budget_what_it_held_is_told(tmp_path: Path) -> None:
    script = tmp_path / "model.py"
    script.write_text("""
import mmap
import numpy as np
kept = [np.ones(20 << 20, np.uint8) for _ in range(5)]
other = mmap.mmap(-1, 1 << 30)  # which no budget sees
for at in range(0, 1 << 30, 4096):
    other[at] = 1
""")
    with group(limit=400 * MIB) as place:
        finished = under_a_budget(script, place)
    assert finished.returncode == -signal.SIGKILL
    first, second, third, line = finished.stderr.splitlines()
    assert re.match("firsttouch: the kernel killed the program for want of memory; .*, most of it not from ", first)
    assert re.match(r"firsttouch: process \d+ held 100 MiB, of \d+.* that limited\(\) allows; ", second)
    assert third == "  the largest living blocks:"
    assert line == f"         100.0 MiB  {script}:4 (5 blocks)"


def test_other_processes_of_a_container_get_the_memory_that_a_pool_keeps_idle() -> None:
    program = """
        import subprocess, sys
        pool = ft.pool(max_idle="8 GiB", decay=None)
        ft.install(pool)
        arrays = [np.ones(MIB, np.uint8) for _ in range(200)]
        arrays.clear()
        grows = "import time; [(time.sleep(0.005), bytearray(b'x') * (1 << 20)) for _ in range(300)]"
        print(subprocess.run([sys.executable, "-S", "-c", grows]).returncode, ft.stats(pool).idle < 200 * MIB)
    """
    with group(limit=440 * MIB) as place:
        assert inside(place, program) == "0 True\n"


def test_a_pool_keeps_at_most_a_quarter_of_the_memory_of_the_container_idle() -> None:
    program = """
        ft.install(ft.pool(decay=None))
        arrays = [np.ones(MIB, np.uint8) for _ in range(300)]
        arrays.clear()
        print(probe.wait_until(lambda: ft.stats().idle <= 512 * MIB // 4))
    """
    with group(limit=512 * MIB) as place:
        assert inside(place, program) == "True\n"
