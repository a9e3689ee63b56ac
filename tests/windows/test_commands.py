"""The commands on Windows: each works, or says in one sentence why it does not."""

import contextlib
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from firsttouch.tools.bench import numa
from firsttouch.tools.bench.common import Settings
from tests.cli.conftest import FIRSTTOUCH
from tests.plugin.suites import pytest_run
from tests.probe import wait_until
from tests.programs import Finished, execute

pytestmark = pytest.mark.skipif(sys.platform != "win32", reason="of Windows")

PROGRAM = """
import numpy as np
x = np.ones(1 << 17)
for _ in range(100):
    x = (x * 2 + x) / 3
print(x.sum())
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "script.py").write_text(PROGRAM)
    return tmp_path / "script.py"


def firsttouch(*words: object, **options: Any) -> Finished:
    return execute(*FIRSTTOUCH, *words, **options)


def test_run_claims_no_gain_that_it_does_not_know(script: Path, tmp_path: Path) -> None:
    done = firsttouch("run", "--json", tmp_path / "report.json", script)
    assert (done.returncode, done.stdout) == (0, "131072.0\n")
    assert ": what was gained is not known: " in done.stderr
    found = json.loads((tmp_path / "report.json").read_text())
    assert found["gain"]["faults"] == 0
    assert found["pool"]["recycled"] > 100


def test_compare_measures_a_program_and_its_children(tmp_path: Path) -> None:
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'x = sum(range(3_000_000))'])"
    done = firsttouch("compare", "--runs", 2, "--json", tmp_path / "out.json", "-c", code, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "out.json").read_text())
    assert [row["name"] for row in found["contenders"]] == ["the default", "the same again", "pool()"]
    for row in found["contenders"]:
        assert (row["failure"], len(row["runs"])) == (None, 2)
        assert all(0 < run["user"] + run["system"] < 4 * run["wall"] for run in row["runs"])
    assert found["absent"] == []  # what wine shows of Linux is not there


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["-c", "raise SystemExit(3)"], "the program ended with status 3; no comparison was made"),
        (["cmd", "/c", "exit 5"], "the program ended with status 5; no comparison was made"),
    ],
)
def test_compare_says_what_failed(words: list[str], said: str) -> None:
    done = firsttouch("compare", *words)
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, f"firsttouch: compare: {said}")


def test_what_a_program_has_started_ends_with_it(tmp_path: Path) -> None:
    held = tmp_path / "held"
    child = f"file = open({str(held)!r}, 'w'); import time; time.sleep(600)"
    code = f"""
import os, subprocess, sys, time
subprocess.Popen([sys.executable, "-c", {child!r}])
while not os.path.exists({str(held)!r}):
    time.sleep(0.01)
"""
    assert firsttouch("compare", "--runs", 1, "-c", code).returncode == 0

    def is_free() -> bool:
        with contextlib.suppress(PermissionError):  # refused while a process has it open
            held.unlink()
        return not held.exists()

    assert wait_until(is_free)


def test_a_trace(script: Path, tmp_path: Path) -> None:
    traced = firsttouch("trace", script, cwd=tmp_path)
    assert (traced.returncode, traced.stdout) == (0, "131072.0\n")
    found = json.loads((tmp_path / "trace.ft").read_text())
    lines = {(os.path.basename(line["file"]), line["line"]) for line in found["lines"]}
    assert lines - {("script.py", 2)} == {("script.py", 3), ("script.py", 5)}  # NumPy's import may take memory, too


def test_an_experiment() -> None:
    done = firsttouch("bench", "zeros", "--quick", "--quiet", "--sizes", "1MiB")
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 MiB" in done.stdout


def test_the_experiment_on_nodes_is_refused() -> None:
    with pytest.raises(RuntimeError, match="it needs Linux, where Python keeps a thread on the processors of a node"):
        numa.run(Settings(quick=True))


def test_info_reads_nothing_of_linux() -> None:
    done = firsttouch("--info", "--json", "-")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert not {"memory", "transparent huge pages", "overcommit"} & set(found)
    assert found["system"].startswith("Windows")


def test_an_access_behind_an_array_is_reported(tmp_path: Path) -> None:
    code = "import ctypes\nimport numpy as np\na = np.zeros(100_000)\nctypes.memset(a.ctypes.data, 1, a.nbytes + 8)"
    done = firsttouch("run", "-q", "--allocator", "guarded()", "-c", code)
    assert done.returncode != 0
    said = "firsttouch: out of bounds: wrote right behind an array of 800000 bytes (EXCEPTION_ACCESS_VIOLATION)\n"
    assert said in done.stderr


@pytest.mark.parametrize(
    ("given", "status", "said"),
    [
        ("pool()", 0, "firsttouch: pool(), installed for the whole run"),
        ("guarded", 4, "--firsttouch=guarded: each test would run in a forked process, and win32 has none"),
    ],
)
def test_modes_of_pytest(tmp_path: Path, given: str, status: int, said: str) -> None:
    (tmp_path / "test_a.py").write_text("import numpy as np\ndef test_a(): assert np.ones(1 << 20).all()")
    ended = pytest_run(tmp_path, f"--firsttouch={given}")
    assert ended.status == status
    assert said in ended.said


REFUSED = {
    "advise": (
        ["advise", "-c", "pass"],
        "what pooled memory saves is estimated for glibc, which Windows does not have",
    ),
    "why": (["why", "-c", "pass"], "it reads what memory is for from Linux's /proc, which this system does not have"),
    "run": (["run", "cmd"], "only Python programs can be served here: replacing malloc requires Linux with glibc"),
}


@pytest.mark.parametrize("command", REFUSED)
def test_what_a_command_cannot_do_it_says(command: str) -> None:
    words, said = REFUSED[command]
    done = firsttouch(*words)
    assert done.returncode != 0
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
