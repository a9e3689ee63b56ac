"""What is traced is what the program requested, and the program is not affected."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

from firsttouch import _firsttouch
from tests.cli.conftest import Start

from .conftest import Trace

WORK = """
import numpy as np
kept = [np.empty(10_000) for _ in range(500)]
for _ in range(20):
    a = np.zeros(1 << 17)
    b = np.add(a, a)
"""


def test_counts_are_those_of_the_program(trace: Trace) -> None:
    found, done = trace(WORK)
    assert done.returncode == 0
    assert done.stdout == ""
    assert re.fullmatch(r"firsttouch: .*t\.ft: [\d,]+ blocks, by \d+ lines\n", done.stderr)
    assert 540 <= found["allocations"] <= 640
    asked = 500 * 80_000 + 40 * (1 << 20)
    assert asked <= found["allocated_bytes"] <= asked + (64 << 10)
    assert 40_000_000 + (2 << 20) <= found["peak_in_use"] <= 40_000_000 + (4 << 20) + (64 << 10)


def test_arrays_that_grow_are_one(tmp_path: Path) -> None:
    file = tmp_path / "t.ft"
    _firsttouch.trace_begin()
    a = np.ones(1000)
    for n in range(2000, 50_000, 1000):
        a.resize(n, refcheck=False)
    _firsttouch.trace_end(str(file), [])
    found = json.loads(file.read_text())
    assert found["allocations"] < 9
    assert 49_000 * 8 <= found["peak_in_use"] < 49_000 * 8 + (64 << 10)


def test_a_program_that_installs_goes_on_being_traced(trace: Trace) -> None:
    code = (
        "import firsttouch as ft, numpy as np\nft.install()\na = [np.ones(1 << 17) for _ in range(30)]\n"
        "assert ft.stats().allocations >= 30 and 'pool' in repr(ft.get_allocator(a[3]))\n"
        "ft.uninstall()\nb = np.ones(1 << 17)\nassert ft.get_allocator(b) == ft.numpy_default()\ndel a, b"
    )
    found, done = trace(code)
    assert done.returncode == 0, done.stderr
    assert 31 << 20 <= found["allocated_bytes"] <= 32 << 20
    assert found["in_use_at_end"] < 1 << 20


def test_without_numpy_there_is_nothing(firsttouch: Start, tmp_path: Path) -> None:
    done = firsttouch("trace", "-o", "t.ft", "-c", "print(1)")
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert done.stderr == "firsttouch: no trace: NumPy was never imported\n"
    assert not (tmp_path / "t.ft").exists()


@pytest.mark.linux("/dev/full")
def test_a_full_disk_is_told(firsttouch: Start) -> None:
    done = firsttouch("trace", "-o", "/dev/full", "-c", "import numpy as np\nnp.ones(9999)\nprint(5)")
    assert (done.returncode, done.stdout) == (0, "5\n")
    assert "no trace: /dev/full cannot be written: No space left on device" in done.stderr


@pytest.mark.linux("signals")
@pytest.mark.parametrize("end", ["os.kill(os.getpid(), 9)", "os._exit(0)", "os.execv('/bin/true', ['true'])"])
def test_a_program_that_comes_to_no_end_leaves_no_trace(firsttouch: Start, end: str) -> None:
    firsttouch("trace", "-c", f"import numpy, os\n{end}")
    done = firsttouch("advise", "trace.ft")
    assert done.returncode == 2
    assert "killed, ended by os._exit or became another, before its trace was written" in done.stderr
