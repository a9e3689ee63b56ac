"""What is recorded is what the program requested, and the program is not affected."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from firsttouch import _firsttouch
from tests.cli.conftest import Start, clean_environment

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
    assert re.fullmatch(r"firsttouch: .*t\.ft: [\d,]+ events, [\d.]+ KiB\n", done.stderr)
    assert found["complete"]
    assert found["lost"] == 0
    assert 540 <= found["allocations"] <= 640
    asked = 500 * 80_000 + 40 * (1 << 20)
    assert asked <= found["allocated_bytes"] <= asked + (64 << 10)
    assert 40_000_000 + (2 << 20) <= found["peak_in_use"] <= 40_000_000 + (4 << 20) + (64 << 10)


def test_arrays_that_grow_are_one(tmp_path: Path) -> None:
    file = tmp_path / "t.ft"
    _firsttouch.trace_begin(str(file), [])
    a = np.ones(1000)
    for n in range(2000, 50_000, 1000):
        a.resize(n, refcheck=False)
    _firsttouch.trace_end()
    found = _firsttouch.trace_summary(str(file), True)
    assert found["allocations"] < 9
    assert 49_000 * 8 <= found["peak_in_use"] < 49_000 * 8 + (64 << 10)


def test_a_program_that_installs_goes_on_being_recorded(trace: Trace) -> None:
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


def test_a_full_disk_is_told(firsttouch: Start) -> None:
    done = firsttouch(
        "trace", "-o", "/dev/full", "-c", "import numpy as np\nfor _ in range(9999): np.ones(9999)\nprint(5)"
    )
    assert (done.returncode, done.stdout) == (0, "5\n")
    assert "is truncated: No space left on device" in done.stderr


CLOSES = """
import numpy as np, os, time
os.closerange(3, 99)
file = open("data.txt", "w")
file.write("precious")
file.flush()
for _ in range(999): np.ones(9999)
time.sleep(0.2)  # the recorder writes every 20 ms
file.write(" and whole")  # written by the interpreter, after the recording has ended
"""


def test_a_file_that_got_the_descriptor_of_the_trace_is_left_alone(trace: Trace, tmp_path: Path) -> None:
    _, done = trace(CLOSES)
    assert (tmp_path / "data.txt").read_text("latin-1") == "precious and whole"
    assert done.returncode == 0
    assert done.stderr.endswith("t.ft is truncated: the program closed its descriptor\n")


def test_two_programs_do_not_write_one_file(firsttouch: Start, tmp_path: Path) -> None:
    code = "import numpy as np\nprint('begun', flush=True)\nfor _ in range(99): np.ones(9999)\ninput()"
    words = [sys.executable, "-m", "firsttouch", "trace", "-c", code]
    with subprocess.Popen(
        words,
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=clean_environment(),
    ) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"begun\n"
        second = firsttouch("trace", "-c", "import numpy as np; print('ran')")
        _, said = first.communicate(b"\n")
    assert (second.returncode, second.stdout) == (0, "ran\n")
    assert second.stderr.endswith("trace.ft cannot be written: another process is recording to it\n")
    assert b"trace.ft: " in said
    found = _firsttouch.trace_summary(str(tmp_path / "trace.ft"), False)
    assert found["allocations"] >= 99
    assert firsttouch("trace", "-c", "import numpy as np").returncode == 0
    assert _firsttouch.trace_summary(str(tmp_path / "trace.ft"), False)["allocations"] < 99  # shorter, and whole


def test_a_killed_program_leaves_what_it_did(tmp_path: Path, firsttouch: Start) -> None:
    code = (
        "import numpy as np, time\nkept = [np.ones(1 << 15) for _ in range(50)]\n"
        "for _ in range(9): time.sleep(0.05); np.ones(4)\nprint('ready', flush=True)\ntime.sleep(60)"
    )
    words = [sys.executable, "-m", "firsttouch", "trace", "-o", "t.ft", "-c", code]
    with subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, env=clean_environment(), text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.2)
        process.kill()
    assert process.returncode == -signal.SIGKILL
    found = _firsttouch.trace_summary(str(tmp_path / "t.ft"), True)
    assert not found["complete"]
    assert found["in_use_at_end"] >= 50 << 18
    with pytest.raises(ValueError, match="is cut off after"):
        _firsttouch.trace_summary(str(tmp_path / "t.ft"), False)
    assert "the record of the run is truncated" in firsttouch("advise", "t.ft").stderr
