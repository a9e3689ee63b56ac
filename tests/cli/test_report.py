"""The report: its content, when it is printed, and when it is not."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programs import execute, running

from .conftest import FIRSTTOUCH, Start, Write

WORK = """
import resource
import numpy as np
a = np.ones(1 << 20)
for _ in range(50):
    b = a * 2
    c = b + 1
print(c.sum(), resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


def labels(report: str) -> list[str]:
    """The names at the left of the report's lines."""
    return [line[2:17].strip() for line in report.splitlines()[1:]]


def test_the_report_and_its_figures_agree_with_what_the_program_did(
    firsttouch: Start, write: Write, tmp_path: Path
) -> None:
    done = firsttouch("run", "--json", "report.json", write("work.py", WORK))
    total, faults = done.stdout.split()
    assert total == "3145728.0"
    said = done.stderr
    assert said.startswith("firsttouch, process ")
    rows = ["time", "large blocks", "fresh memory", "block memory", "resident", "page faults"]
    assert labels(said)[:6] == rows
    assert "on recycled memory" in said
    assert "fresh memory   at most " in said  # touched or not
    assert "reused" in said
    assert "MiB" in said
    assert "in the kernel" in said
    assert len(said.splitlines()) <= 9
    assert max(map(len, said.splitlines())) <= 80
    found = json.loads((tmp_path / "report.json").read_text())
    pool = found["pool"]
    array = 8 << 20
    assert 101 <= pool["allocations"] <= 140  # with what NumPy's import takes
    assert 90 <= pool["recycled"] <= pool["allocations"] - 4
    assert 90 * array <= pool["recycled_bytes"] <= pool["allocated_bytes"] + 4 * array
    assert array <= pool["first_touched_bytes"] <= 8 * array
    assert 2 * array <= pool["peak_in_use"] <= 6 * array
    assert pool["peak_held"] >= pool["peak_in_use"]
    assert found["resident_bytes"]["peak"] >= 3 * array
    assert found["resident_bytes"]["now"] <= found["resident_bytes"]["peak"]
    assert 0 < found["seconds"]["wall"] < 60
    assert set(found["gain"]) == {"faults", "seconds", "share"}
    assert found["faults"]["minor"] < int(faults)  # the same process ran the command line first
    assert found["conclusion"] in said.splitlines()[0]
    assert found["pooled"] is True
    assert found["not_pooled_because"] is None
    assert found["main_process"] is True
    assert found["command"][-1].endswith("work.py")
    assert firsttouch("run", "--quiet", "work.py").stderr == ""


def test_a_name_that_is_no_text(firsttouch: Start) -> None:
    """The kernel cuts names after 15 bytes, also in the middle of a letter."""
    code = "import ctypes, numpy; numpy.ones(10); ctypes.CDLL(None).prctl(15, 'Gr\u00f6'.encode()[:3], 0, 0, 0)"
    said = firsttouch("run", "-c", code).stderr
    assert "resident" in labels(said)


#: What plainly takes hardly any fault, what takes most of its time for faults, and small arrays that live on.
NONE = """
import numpy as np
kept = [np.ones(4000) for _ in range(50)]
for i in range(20_000):
    a = np.ones(2100 + i % 3000)
    b = a + 1
"""
MUCH = """
import numpy as np
a, b = np.ones(1 << 17), np.ones(1 << 17)
for _ in range(500):
    c = (a * b + a) / (b + 1.0) - a
"""
#: The same after a gap in the C library's heap, as compiling sources leaves one, was filled.
GAP = f"""
pieces = [bytes(100_000) for _ in range(120)]; border = bytes(100_000); del pieces
import numpy as np; kept = [np.ones(1 << 17) for _ in range(20)]{MUCH}"""
KEPT = """
import numpy as np
kept = [np.ones(3000) for _ in range(4000)]
"""
#: The same after temporaries of Python's own, as of a file that is read in pieces.
READ = "import numpy\nfor _ in range(100_000): bytes(17_000)" + KEPT
#: What nobody touches, plainly or on a pool.
UNTOUCHED = "import numpy as np\nkept = [bytes(20_000_000) for _ in range(30)]\nfor _ in range(99): np.empty(10**7)\n"
#: A list that takes its pages along as it grows.
GROWN = "import numpy\nkept = []\nfor _ in range(3_000_000): kept.append(None)\n"
#: Small arrays that come and go together.
DROPPED = """
import numpy as np
for _ in range(40): kept = [np.ones(3000) for _ in range(500)]; del kept
"""
#: Arrays each of which is larger than all before, so that the C library maps it.
APPENDED = "import numpy as np\na = np.array([])\nfor _ in range(400): a = np.append(a, np.ones(2000))\n"
#: Arrays that one thread makes and another one frees.
PASSED = """
import numpy as np, queue, threading
made = queue.Queue(4)
def make():
    for size in (3000, 12500):
        for _ in range(2000): made.put(np.ones(size))
    made.put(None)
threading.Thread(target=make).start()
while made.get() is not None: pass
"""


def test_what_is_said_to_be_gained_is_what_plain_numpy_would_have_lost(
    firsttouch: Start, python: Start, write: Write, tmp_path: Path
) -> None:
    """Recycling alone is no gain: plainly, the C library reuses memory, too.

    Faults are counted, as seconds depend on what else runs; report.rs tests the words.
    """
    count = "import resource\nprint(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)\n"

    def faults_said(work: str) -> int:
        done = firsttouch("run", "--json", "report.json", write("work.py", work))
        assert done.returncode == 0, done.stderr
        return int(json.loads((tmp_path / "report.json").read_text())["gain"]["faults"])

    assert faults_said(NONE) < 1000
    assert faults_said(UNTOUCHED) < 1000
    assert faults_said(GROWN) < 10_000
    assert faults_said(PASSED) < 31_000  # at most, half of them; plainly, it is none
    for work in (MUCH, GAP, KEPT, READ, DROPPED, APPENDED):
        plainly = int(python(write("plain.py", work + count)).stdout)
        assert plainly / 2 < faults_said(work) < 3 * plainly


def test_a_program_that_leaves_its_work_to_others_is_not_judged(firsttouch: Start) -> None:
    """The report is on one process, which says nothing of what the others could gain."""
    works = "import time\nwhile time.process_time() < 0.7: pass"
    done = firsttouch("run", "-c", f"import numpy, subprocess, sys; subprocess.run([sys.executable, '-c', {works!r}])")
    assert done.stderr.splitlines()[0].endswith(": most of the work was done by child processes")
    assert re.search(r"child processes used [^ ]+ m?s and are not in this report; --json with %p", done.stderr)


@pytest.mark.parametrize("what", ["'-c', 'import numpy'", "'sleep', '0'"])
def test_children_that_came_before_are_not_the_programs(what: str) -> None:
    """An exec keeps what the kernel counted of them."""
    code = f"""
import os, subprocess, sys, time
subprocess.run([sys.executable, "-c", "import time\\nwhile time.process_time() < 0.7: pass"])
os.execv(sys.executable, [sys.executable, "-m", "firsttouch", "run", {what}])
"""
    done = execute(sys.executable, "-c", code)
    assert "firsttouch, process " in done.stderr
    assert "child processes" not in done.stderr


def test_last_failure_is_told(firsttouch: Start, tmp_path: Path) -> None:
    code = "import numpy\ntry: numpy.ones(1 << 52)\nexcept MemoryError: print('caught')"
    done = firsttouch("run", "--json", "report.json", "-c", code)
    assert done.stdout == "caught\n"
    assert "last failure" in labels(done.stderr)
    told = json.loads((tmp_path / "report.json").read_text())["last_failure"]
    assert told["asked"] == 8 << 52
    assert " ".join(told["reason"].split()) in " ".join(done.stderr.split())


def test_comes_after_the_traceback_and_other_exit_handlers(firsttouch: Start) -> None:
    code = "import atexit, sys\natexit.register(lambda: print('bye', file=sys.stderr))\n1/0"
    said = firsttouch("run", "-c", code).stderr
    assert said.index("ZeroDivisionError") < said.index("bye") < said.index("firsttouch, process")


def test_control_c(write: Write) -> None:
    """Traceback, report, and an end by the signal, so that a shell stops its loop."""
    script = write("wait.py", "import numpy, time\nprint('ready', flush=True)\ntime.sleep(60)\n")
    with running(*FIRSTTOUCH, "run", script, ready="ready", stderr=subprocess.PIPE) as process:
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert said.index("KeyboardInterrupt") < said.index("firsttouch, process")


def test_program_that_replaces_standard_error_and_never_imports_numpy(firsttouch: Start) -> None:
    code = "import io, sys; sys.stderr = sys.stdout = io.StringIO()"
    done = firsttouch("run", "-c", code)
    assert done.stdout == ""
    assert "NumPy was never imported" in done.stderr
    assert labels(done.stderr)[:3] == ["time", "resident", "page faults"]


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "2>&- >&- <&-"])
def test_standard_error_that_cannot_be_written(tmp_path: Path, redirection: str) -> None:
    """Exit status and files are those of the program: nothing is written anywhere else."""
    code = "import numpy, os; [os.open(name, os.O_CREAT | os.O_WRONLY) for name in ('data', 'more')]"
    command = f'{sys.executable} -m firsttouch run -c "{code}" {redirection}'
    done = execute("bash", "-c", command, cwd=tmp_path)
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)
    assert (tmp_path / "data").read_bytes() == (tmp_path / "more").read_bytes() == b""


@pytest.mark.parametrize("end", ["sys.stderr.close()", "os.close(2)", "sys.__stderr__ = sys.stderr = None"])
def test_standard_error_that_the_program_closed(firsttouch: Start, python: Start, end: str) -> None:
    code = f"import os, sys; {end}"
    plain, ours = python("-c", code), firsttouch("run", "-c", code)
    assert (ours.stdout, ours.stderr, ours.returncode) == (plain.stdout, plain.stderr, plain.returncode)


def test_program_that_execs_another_python(firsttouch: Start) -> None:
    """It is still the process that was started, so it is the one that reports."""
    code = "import os, sys; os.execv(sys.executable, [sys.executable, '-c', 'import numpy'])"
    done = firsttouch("run", "-c", code)
    assert done.stderr.count("firsttouch, process") == 1
    assert "large blocks" in done.stderr


def test_variable_that_we_did_not_write(python: Start) -> None:
    pid_free = python("-c", "import numpy; print(1)", env={"FIRSTTOUCH_RUN": "yes please"})
    assert (pid_free.stdout, pid_free.returncode) == ("1\n", 0)
    assert os.linesep not in pid_free.stderr.strip()


OTHERS = """
import sys, types
import numpy as np
sys.modules["torch"] = types.ModuleType("torch")
arrow = sys.modules["pyarrow"] = types.ModuleType("pyarrow")
arrow.default_memory_pool = lambda: types.SimpleNamespace(max_memory=lambda: {used})
np.ones(1 << 20)
"""


@pytest.mark.parametrize(
    ("used", "named"), [("1 << 30", ["PyTorch", "Arrow"]), ("0", ["PyTorch"]), ("1 / 0", ["PyTorch"])]
)
def test_packages_with_memory_of_their_own_are_named(firsttouch: Start, used: str, named: list[str]) -> None:
    said = " ".join(firsttouch("run", "-c", OTHERS.format(used=used)).stderr.split())
    assert re.findall(r"(\w+)'s \w+ have memory of their own and were not served", said) == named
    assert "of their own" not in firsttouch("run", "--all", "-c", OTHERS.format(used=used)).stderr
