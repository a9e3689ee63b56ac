"""Large arrays by source line, and what a pool would save."""

import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from firsttouch.tools.cli import advise
from tests.cli.conftest import FIRSTTOUCH, Start
from tests.programs import Finished, execute

FAULTS = """\
import numpy as np
a = np.ones(1_000_000)
for _ in range(60):
    b = np.add(
        a, 1)
    c = b[::2] * 2
small = [np.ones(100) for _ in range(50)]
for _ in range(20):
    d = np.ones(5_000_000)  # glibc maps and returns each
"""

COMPUTES = """\
import numpy as np
a = np.random.default_rng(0).random((300, 300))
for _ in range(60):
    np.linalg.svd(a, compute_uv=False)
"""


def told(done: Finished) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_lines_with_their_arrays_and_what_can_be_gained(firsttouch: Start, tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(FAULTS)
    found = told(firsttouch("advise", "--json", "-", "work.py"))
    assert not list(tmp_path.glob("*.ft"))
    lines = {each["line"]: each for each in found["lines"] if each["line"] > 1}  # where NumPy is imported
    assert set(lines) in ({2, 4, 6, 9}, {2, 5, 6, 9})
    assert all(each["file"] == str(tmp_path / "work.py") for each in lines.values())
    temporary = lines.get(4) or lines[5]
    assert (temporary["count"], temporary["bytes"]) == (60, 60 * 8_000_000)
    assert (lines[6]["count"], lines[6]["bytes"]) == (60, 60 * 4_000_000)
    assert 0 < temporary["mean_lifetime"] < found["wall"] / 20
    assert 0 < temporary["seconds"] <= found["processor"]
    low, high = found["gain_seconds"]
    assert low < high
    assert 0 < high <= found["processor"] <= found["wall"] * (os.cpu_count() or 1)
    assert found["gain_share"] == pytest.approx([low / found["processor"], high / found["processor"]], abs=1e-5)
    assert max(lines, key=lambda line: lines[line]["avoidable"]) == 9
    assert lines[2]["avoidable"] < lines[9]["avoidable"]  # no pool has memory that was never used


def test_of_a_trace_at_80_columns(firsttouch: Start, tmp_path: Path) -> None:
    (tmp_path / "work.py").write_text(FAULTS)
    assert firsttouch("trace", "-q", "-o", "t.ft", "work.py").returncode == 0
    done = firsttouch("advise", "t.ft", env={"COLUMNS": "80"})
    assert (done.returncode, done.stdout) == (0, "")
    assert max(map(len, done.stderr.splitlines())) <= 80
    assert "work.py:9" in done.stderr


def test_advice_passes_the_programs_status_on(firsttouch: Start, tmp_path: Path) -> None:
    done = firsttouch("advise", "-c", "import numpy as np, sys\na = np.ones(99999)\nsys.exit(3)")
    assert done.returncode == 3
    assert "pooled memory" in done.stderr
    done = firsttouch("advise", "-c", "import numpy, os; os.kill(os.getpid(), 15)")
    assert done.returncode == -15
    assert done.stderr.startswith("firsttouch: no advice: the program was killed, ended by os._exit")


ROLLED = """
u = np.zeros(({0}, {0}))
for _ in range({1}):
    around = np.roll(u, 1, 0) + np.roll(u, -1, 0) + np.roll(u, 1, 1) + np.roll(u, -1, 1)
    u = u + 0.1 * (around - 4 * u)
"""
PI = """
random = np.random.default_rng(5)
for _ in range(300):
    x, y = random.random(10_000), random.random(10_000)
    np.count_nonzero(x * x + y * y < 1.0)
"""
HASHED = """
a = np.zeros(20_000_000, np.uint8)
for _ in range(4):
    hashlib.md5(a.tobytes()).digest()
"""
SAVED = """
a = np.ones(1_500_000)
for _ in range(6):
    file = io.BytesIO()
    np.save(file, a)
    file.seek(0)
    np.load(file)
"""
HANDED_BACK = """
with ThreadPoolExecutor(4) as pool:
    for _ in range(2):
        made = list(pool.map(lambda _: np.ones(50_000), range(300)))
"""
#: What plainly takes about 41,000, 13,000, 1,000, 24,000, 20,000, 24,000 and 59,000 page faults beyond the imports.
WORK = {
    "2 MB": ROLLED.format(500, 120),
    "8 MB": ROLLED.format(1000, 30),
    "80 kB": PI,
    "24 kB": "kept = [np.ones(3000) for _ in range(4000)]",
    "bytes": HASHED,
    "file": SAVED,
    "threads": HANDED_BACK,
}


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_faults_are_estimated_as_plain_numpy_takes_them(firsttouch: Start, work: str) -> None:
    imports = "import hashlib, io, resource, sys\nfrom concurrent.futures import ThreadPoolExecutor\nimport numpy as np"
    count = "resource.getrusage(resource.RUSAGE_SELF).ru_minflt"
    code = f"{imports}\nbefore = {count}\n{work}\nprint({count} - before, file=sys.stderr)"
    done = firsttouch("advise", "--json", "-", "-c", code)
    taken = int(done.stderr.splitlines()[-1])
    assert 0.6 * taken - 1000 < told(done)["faults_plainly"] < 1.4 * taken + 1000


BUFFERS = """\
import numpy as np
arrays = [np.ones(1 << 17) for _ in range(20)]
made = bytes(3 << 20)
grown = []
for number in range(200_000):
    grown.append(None)
"""


def test_buffers_are_counted_beside_arrays(firsttouch: Start) -> None:
    found = told(firsttouch("advise", "--json", "-", "-c", BUFFERS))
    arrays, grown = 20 << 20, 200_000 * 8
    assert arrays <= found["allocated_bytes"] < arrays + (256 << 10)
    assert (3 << 20) + grown <= found["buffer_bytes"] < arrays  # what an array is made of is no buffer, too
    if sys.version_info >= (3, 12):
        lines = {each["line"]: each for each in found["lines"]}
        assert (lines[2]["count"], lines[3]["count"], lines[3]["bytes"]) == (20, 1, (3 << 20) + sys.getsizeof(b""))
        assert lines[6]["count"] == 1  # where it grew to 16 KiB


def test_without_buffers_the_advice_says_so(firsttouch: Start) -> None:
    code = f"import tracemalloc; tracemalloc.start()\n{BUFFERS}"
    done = firsttouch("advise", "--json", "-", "-c", code)
    found = told(done)
    assert found["buffers"] == 0
    assert "; only arrays were traced, not bytes, lists and the like: something wraps CPython's" in found["advice"]


#: Prints from which size on glibc maps a block by itself, which the probe leaves as it is.
THRESHOLD = """
import ctypes
import numpy
libc = ctypes.CDLL(None)
libc.malloc.restype = libc.realloc.restype = ctypes.c_void_p
libc.malloc.argtypes, libc.realloc.argtypes = [ctypes.c_size_t], [ctypes.c_void_p, ctypes.c_size_t]
held = [libc.malloc(100_000) for _ in range(40)]  # where the heap has room by now
size, is_mapped = 1 << 17, 0
while size < 1 << 25 and not is_mapped:
    size += size // 32
    block = libc.malloc(size)
    is_mapped = ctypes.c_size_t.from_address(block - 8).value & 2  # the bit of the chunk's header that says so
    libc.free(ctypes.c_void_p(libc.realloc(block, 1)))
print(size)
"""


@pytest.mark.skipif(
    not hasattr(os, "confstr") or "glibc" not in (os.confstr("CS_GNU_LIBC_VERSION") or ""), reason="glibc"
)
def test_a_traced_program_has_the_thresholds_of_a_plain_one(firsttouch: Start, python: Start) -> None:
    plain, recorded = (
        int(start(*words).stdout)
        for start, words in ((python, ("-c", THRESHOLD)), (firsttouch, ("trace", "-c", THRESHOLD)))
    )
    assert abs(recorded - plain) <= plain / 16


def test_advice_says_that_there_is_nothing(firsttouch: Start) -> None:
    found = told(firsttouch("advise", "--json", "-", "-c", COMPUTES))
    assert "to gain" in found["advice"]
    assert found["verdict"] == "nothing"
    done = firsttouch("advise", "-c", "import numpy; numpy.ones(3)")
    assert "nothing to gain" in done.stderr
    done = firsttouch("advise", "-c", "print(1)")
    assert (done.returncode, done.stdout) == (0, "1\n")
    assert done.stderr.startswith("firsttouch: no advice: NumPy was never imported")
    assert done.stderr.count("firsttouch: ") == 1


def test_lines_are_the_programs_and_name_the_librarys_beside_them(firsttouch: Start, python: Start) -> None:
    code = "import copy\nimport numpy as np\na = np.ones(1 << 20)\nb = copy.deepcopy(a)"
    found = told(firsttouch("advise", "--json", "-", "-c", code))
    lines = {(each["file"], each["line"]): each["library"] for each in found["lines"]}
    assert set(lines) - {("<string>", 2)} == {("<string>", 3), ("<string>", 4)}
    assert lines["<string>", 3] == ""
    assert re.fullmatch(r"copy\.py:\d+", lines["<string>", 4])
    line = {"file": "<string>", "line": 4, "library": "copy.py:10", "count": 10, "bytes": 10 << 20, "avoidable": 0.5}
    table = advise.gaining_lines({"lines": [line], "processor": 1.0})
    assert [row[0] for row in table.rows] == ["<string>:4", "  in copy.py:10"]
    line["library"] = "pandas/core/computation/expressions.py:85"
    table = advise.gaining_lines({"lines": [line], "processor": 1.0})
    assert re.fullmatch(r"  in \.\.\.\w+/expressions\.py:85", table.rows[-1][0]), "the path is cut, not the word"
    budget = f"import firsttouch as ft\nft.install(ft.limited(ft.pool(), '20 MiB'))\n{code}\nc = a + b"
    assert re.search(r"<string>:6, in copy\.py:\d+", python("-c", budget).stderr)


@pytest.mark.parametrize(
    ("gain", "verdict", "said"),
    [
        ((0.4, 0.9), "certain", "pooled memory would save 400 ms to 900 ms (6.7 to 15.0 %) of 6.00 s of "),
        ((-0.01, 0.4), "perhaps", "pooled memory may save up to 400 ms (6.7 %) of 6.00 s of processor time; first"),
        ((-0.01, 0.02), "nothing", "nothing to gain from pooled memory: at most 20.0 ms (0.3 %) of 6.00 s of "),
        ((-0.6, -0.1), "nothing", "nothing to gain from pooled memory: it would take up to 600 ms (10 %) more"),
    ],
)
def test_advice_is_a_range(gain: tuple[float, float], verdict: str, said: str) -> None:
    trace = {"lines": [{}], "facts": {}, "processor": 6.0, "children_seconds": 0}
    trace |= {"gain_seconds": gain, "verdict": verdict}
    found = advise.conclusion(trace, "a.py -n 3")
    assert found.startswith(said)
    assert found.endswith(": firsttouch run a.py -n 3") == (verdict == "certain")
    found = advise.conclusion({**trace, "children_seconds": 6.5}, "a.py")
    assert found.startswith("what there is to gain is not known; child processes took 6.50 s of processor time")


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGUSR1])
def test_a_program_that_is_killed_leaves_no_folder(tmp_path: Path, ending: signal.Signals) -> None:
    code = f"import os, time; os.kill(os.getppid(), {ending:d}); time.sleep(100); open('lived', 'w')"
    done = execute(*FIRSTTOUCH, "advise", "-c", code, cwd=tmp_path, env={"TMPDIR": str(tmp_path)})
    assert done.returncode == -ending
    assert list(tmp_path.iterdir()) == []
