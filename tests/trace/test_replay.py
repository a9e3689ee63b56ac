"""A replay makes the program's requests, and holds what the program held."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from .conftest import Trace

Replay = Callable[..., list[dict[str, Any]]]

#: Each holds far more in arrays than an interpreter grows by.
PROGRAMS = {
    "temporaries": "a = np.ones(6_000_000)\nfor _ in range(5): b = (a * 2 + 1) / 3 - a\n",
    "many": "a = [np.ones(1 << 14) for _ in range(2000)]\ndel a[::2]\na += [np.ones(1 << 15) for _ in range(400)]\n",
    # Below NumPy's limit for huge pages: at their edges each run has others, as its addresses are others (12 %).
    "sparse": "z = [np.zeros(390_000) for _ in range(200)]\nfor x in z: x[:130_000] = 1\n",
    # Eight pages of each: one more, as a block begins behind the C library's notes.
    "sparser": "z = [np.zeros(40_000) for _ in range(3600)]\nfor x in z: x[:4096] = 1\n",
    "growing": "a = np.ones(1000)\nfor n in range(1, 40): a = np.concatenate([a, np.ones(500_000)])\n",
}


@pytest.mark.parametrize("allocator", ["numpy_default()", "pool()"])
@pytest.mark.parametrize("program", PROGRAMS)
def test_peak_held_is_that_of_the_run(trace: Trace, replay: Replay, program: str, allocator: str) -> None:
    options = () if allocator == "numpy_default()" else ("--allocator", allocator)
    found, done = trace("import numpy as np\n" + PROGRAMS[program], *options)
    assert done.returncode == 0, done.stderr
    held = int(found["facts"]["peak_held"])
    assert held > 100 << 20
    (played,) = replay(allocator)
    assert played["peak_in_use"] == found["peak_in_use"]
    assert played["peak_held"] == pytest.approx(held, rel=0.05)
    if allocator == "pool()":
        assert played["allocator_peak_held"] == pytest.approx(int(found["facts"]["allocator_peak_held"]), rel=0.05)


def test_what_is_touched(trace: Trace, replay: Replay) -> None:
    trace(
        "import numpy as np\na = [np.ones(1 << 22) for _ in range(3)]\n"
        "z = np.zeros(1 << 24)\nz[: 1 << 20] = 1\ne = np.empty(1 << 24)"
    )
    held = {mode: replay("pages()", options=("--touch", mode))[0]["peak_held"] for mode in ("none", "first", "all")}
    assert held["none"] < 8 << 20
    for mode in ("first", "all"):
        assert 100 << 20 < held[mode] < 116 << 20


def test_threads_of_the_trace_are_threads(trace: Trace, replay: Replay) -> None:
    found, _ = trace(
        "import numpy as np, threading\n"
        "def work():\n    keep = [np.ones(30_000) for _ in range(50)]\n"
        "a = np.ones(9)\nfor _ in range(6):\n    t = threading.Thread(target=work); t.start(); t.join()\n"
    )
    assert found["threads"] == 7
    for options in ((), ("--one-thread",)):
        for played in replay("numpy_default()", "pool()", options=options):
            assert played["events"] == found["events"]
            assert played["peak_in_use"] == found["peak_in_use"]
            assert played["refused"] == 0


def test_threads_that_cannot_be_started_are_told(trace: Trace, tmp_path: Path) -> None:
    trace(
        "import numpy as np, threading\nall_there = threading.Barrier(500)\n"
        "def work():\n    a = np.ones(9); all_there.wait(); del a\n"
        "threads = [threading.Thread(target=work) for _ in range(500)]\n"
        "for t in threads: t.start()\nfor t in threads: t.join()"
    )
    # Room for NumPy, and not for so many stacks of 2 MiB.
    command = f"ulimit -v 1000000; exec {sys.executable} -m firsttouch replay --allocator 'numpy_default()' t.ft"
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "cannot start a thread for thread " in done.stderr


def test_allocators_that_serve_no_process_can_be_played(trace: Trace, replay: Replay) -> None:
    trace("import numpy as np\nfor _ in range(50): a = np.ones(1 << 15)")
    for played in replay("malloc()", "calloc()", "limited(pool(), '4 GiB')", "mimalloc", "guarded(pages())"):
        assert played["refused"] == 0
        assert played["seconds"] > 0


def test_refusals_are_counted(trace: Trace, replay: Replay) -> None:
    trace("import numpy as np\nkept = [np.ones(1 << 17) for _ in range(30)]\na = np.ones(10)\na.resize(1 << 20)")
    (played,) = replay("limited(pool(), '10 MiB')")
    assert 15 <= played["refused"] <= 25
    assert played["fragmentation"] is None  # of the peak in use a part was refused
