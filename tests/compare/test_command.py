"""`firsttouch compare` on real programs, and on programs that cannot be compared."""

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import FIRSTTOUCH, working
from tests.probe import wait_until
from tests.programs import Finished, running

from .conftest import Compare, Write

# --- A real program with many page faults.

# The second array ends at the heap's top: glibc gives it back at every turn, and all its pages are faulted in again.
FAULTS = """\
import numpy as np
for _ in range(60):
    a = np.empty(3_900_000, np.uint8)
    b = np.empty(3_900_000, np.uint8)
    a[::4096] = b[::4096] = 1
    del a, b
print("done")
"""


def row(found: dict[str, Any], name: str) -> dict[str, Any]:
    rows: list[dict[str, Any]] = found["contenders"]
    return next(row for row in rows if row["name"] == name)


def test_the_gain_of_a_program_that_faults_is_found(compare: Compare, write: Write, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    write("faults.py", FAULTS)
    done = compare("--runs", 5, "--json", "out.json", "--plot", "out.png", "faults.py", "--quick")
    assert done.returncode == 0, done.stderr
    assert "One run of faults.py --quick takes " in done.stderr  # what went to the program is seen
    assert "to be compared: the default (twice), pool() and tuned glibc." in done.stderr
    found = json.loads((tmp_path / "out.json").read_text())
    for name in ("the default", "the same again", "pool()", "tuned glibc"):
        assert len(row(found, name)["runs"]) == 5
        assert name in done.stdout
    faults = {name: row(found, name)["runs"][0]["minor_faults"] for name in ("the default", "pool()")}
    assert faults["pool()"] < faults["the default"] / 5
    assert row(found, "pool()")["remark"] is None
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    noise = found["noise"]
    if "pool()" not in found["advice"]["faster"] and noise["high"] / noise["low"] > 2:
        pytest.skip(f"this machine is too busy: the default against itself gave {noise}")
    assert "pool()" in found["advice"]["faster"]
    assert "as fast as the default" in done.stdout


# --- Programs that cannot be compared: one line each, and no partial table.


def stopped(done: Finished, *said: str) -> None:
    assert (done.returncode, done.stdout) == (1, "")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("firsttouch: compare: ")
    assert last.endswith("no comparison was made")
    for words in said:
        assert words in done.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["-c", "print('begun'); raise ValueError('no such thing')"],
            ["ValueError: no such thing", "the program ended with status 1"],
        ),
        (["-c", "import os; os.kill(os.getpid(), 9)"], ["was ended by SIGKILL"]),
        (
            ["-c", "import time; print('same'); print(time.time_ns())"],
            ["the output differs from that under the default before: line 2 is", "--ignore-output"],
        ),
        (["-c", "input()"], ["EOFError", "standard input is empty"]),
    ],
)
def test_what_cannot_be_compared_says_why(compare: Compare, words: list[str], said: list[str]) -> None:
    stopped(compare(*words), *said)


def test_ignored_output_may_differ(compare: Compare) -> None:
    done = compare("--ignore-output", "--runs", 1, "-q", "-c", "import time; print(time.time_ns())")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("No conclusion: 1 run of each")


def test_standard_input_is_the_same_for_every_run(compare: Compare, write: Write) -> None:
    code = "import sys; text = sys.stdin.read(); assert text == 'some text', text"
    with write("input", "some text").open() as file:
        done = compare("--runs", 1, "-q", "-c", code, stdin=file)
    assert done.returncode == 0, done.stderr


def test_a_contender_that_fails_or_prints_something_else_has_a_row_that_says_so(compare: Compare) -> None:
    code = "import os, sys; run = os.environ.get('FIRSTTOUCH_RUN'); print('x', bool(run))"
    done = compare("--runs", 1, "--allocator", "mimalloc", "-c", f"{code}; 'mimalloc' in str(run) and sys.exit('no')")
    assert done.returncode == 0
    assert "pool(): the output differs from that under the default before: line 1 is 'x True\\n' inst" in done.stdout
    assert "mimalloc: the program ended with status 1: no" in done.stdout
    assert "left out" in done.stdout


def test_any_command_can_be_compared(compare: Compare, write: Write) -> None:
    write("twice.sh", f"{sys.executable} -c 'import numpy; numpy.ones(10**6)'\n")
    done = compare("--runs", 1, "sh", "twice.sh")
    assert done.returncode == 0, done.stderr
    assert "no process reported" not in done.stdout
    done = compare("--runs", 1, "true")
    assert "pool()" not in done.stdout
    assert "preloaded pool: it received no request for a large block" in done.stdout


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_ends_the_program_and_leaves_a_line(tmp_path: Path, number: signal.Signals) -> None:
    pytest.importorskip("rich")
    code = "open('begun', 'w').close()\nwhile True: pass"
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stderr": subprocess.PIPE, "cwd": tmp_path}
    # Under nohup it would be ignored.
    default = lambda: signal.signal(number, signal.SIG_DFL)  # noqa: E731
    with running(*FIRSTTOUCH, "compare", "-c", code, preexec_fn=default, **options) as begun:
        assert wait_until((tmp_path / "begun").exists)
        begun.send_signal(number)
        out, error = begun.communicate(timeout=60)
    assert (begun.returncode, out) == (130, "")
    assert error.splitlines()[1:] == ["firsttouch: compare: interrupted; no results were written"], error
    assert working(tmp_path) == []
