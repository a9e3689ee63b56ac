"""One measured run: the kernel's counts, however it ended."""

import os
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from firsttouch.tools.compare.runs import CannotStartError, Files, NeverEndedError, Run, once


def run(folder: Path, *command: str, timeout: float | None = None) -> Run:
    files = Files(os.devnull, str(folder / "out"), str(folder / "err"))
    return once(command, dict(os.environ), files, timeout)


def test_time_memory_and_faults_are_the_programs_own(tmp_path: Path) -> None:
    kept = np.ones(20_000_000)  # this process is large, and must not be mistaken for the program
    found = run(tmp_path, sys.executable, "-S", "-c", "import time; time.sleep(0.2)")
    assert 0.2 <= found.wall < 20
    assert found.user + found.system < found.wall
    assert 0 < found.peak_bytes < 40 << 20 < kept.nbytes
    larger = run(tmp_path, sys.executable, "-S", "-c", "x = b'1' * (100 << 20)")
    assert larger.peak_bytes > 100 << 20
    assert larger.minor_faults > found.minor_faults


def test_children_are_counted_where_they_are_waited_for(tmp_path: Path) -> None:
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-S', '-c', 'x = b\"1\" * ({100 << 20})'])"
    assert run(tmp_path, sys.executable, "-c", code).peak_bytes > 100 << 20


@pytest.mark.parametrize(
    ("code", "words"), [("raise SystemExit(3)", "ended with status 3"), ("import os; os.abort()", "SIGABRT")]
)
def test_how_it_ended(tmp_path: Path, code: str, words: str) -> None:
    assert words in run(tmp_path, sys.executable, "-S", "-c", code).ended


def test_streams_lead_where_they_should(tmp_path: Path) -> None:
    run(tmp_path, "sh", "-c", "echo one; echo two >&2; cat")
    assert (tmp_path / "out").read_text() == "one\n"
    assert (tmp_path / "err").read_text() == "two\n"


def test_signals_are_as_a_shell_leaves_them(tmp_path: Path) -> None:
    run(tmp_path, "sh", "-c", "yes | head -n 1")  # yes would complain of a broken pipe, were SIGPIPE ignored
    assert (tmp_path / "err").read_text() == ""


def test_what_is_no_program(tmp_path: Path) -> None:
    with pytest.raises(CannotStartError, match="No such file"):
        run(tmp_path, "no-such-program")


def test_a_group_that_does_not_listen_is_ended(tmp_path: Path) -> None:
    script = f"trap '' TERM; echo $$ > {tmp_path}/pid; sleep 600 & sleep 600"
    with pytest.raises(NeverEndedError):
        run(tmp_path, "sh", "-c", script, timeout=0.5)
    state = Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}/stat")
    until = time.monotonic() + 30  # whoever takes orphans over may be slow to bury them
    while state.exists() and state.read_text().rpartition(")")[2].split()[0] != "Z":
        assert time.monotonic() < until
        time.sleep(0.05)
