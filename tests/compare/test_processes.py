"""One measured run: the kernel's counts, however it ended; and no measured process outlives the command."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firsttouch.tools.measuring.processes import Run, once
from tests.cli.conftest import working
from tests.probe import wait_until
from tests.programs import running

# --- One measured run: the kernel's counts, however it ended.


def run(folder: Path, *command: str) -> Run:
    return once(command, dict(os.environ), os.devnull, str(folder / "out"), str(folder / "err"))


def test_time_memory_and_faults_are_the_programs_own(tmp_path: Path) -> None:
    kept = np.ones(20_000_000)  # this process is large, and must not be mistaken for the program
    found = run(tmp_path, sys.executable, "-S", "-c", "import time; time.sleep(0.2)")
    assert found.wall >= 0.2
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


# --- No measured process outlives the command, however the command ends.

#: Ignores whatever can be ignored, says that it has begun, and spins.
SPIN = """
import pathlib, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
pathlib.Path('begun').touch()
while True: pass
"""

WORKER = """
from firsttouch.tools.measuring.contenders import DEFAULT
from firsttouch.tools.measuring.processes import ask
from runpy import run_path
ask(DEFAULT, run_path, path_name="spin.py")
"""

COMPARE = ["-m", "firsttouch", "compare", "--runs", "1"]
COMMANDS = {
    "a program": [*COMPARE, "spin.py"],
    "a program of a program": [*COMPARE, "sh", "-c", f'"{sys.executable}" spin.py & wait'],
    "a worker": ["-c", WORKER],
}


@contextmanager
def begun(folder: Path, words: list[str], ignored: signal.Signals | None = None) -> Iterator[subprocess.Popen[str]]:
    """The command, when its program spins; signals as a terminal has them, whatever pytest was started under."""
    pytest.importorskip("rich")
    (folder / "spin.py").write_text(SPIN)

    def settle() -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN if number == ignored else signal.SIG_DFL)

    options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stderr": subprocess.STDOUT, "preexec_fn": settle}
    with running(sys.executable, *words, cwd=folder, **options) as process:
        try:
            assert wait_until(lambda: (folder / "begun").exists() or process.poll() is not None)
            assert (folder / "begun").exists(), process.communicate()[0]
            yield process
        finally:
            for pid in working(folder):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize(
    ("what", "number"),
    [
        *((what, signal.SIGKILL) for what in COMMANDS),
        ("a program of a program", signal.SIGTERM),
        ("a program", signal.SIGHUP),
        ("a worker", signal.SIGINT),
    ],
)
def test_nothing_outlives_the_command(tmp_path: Path, what: str, number: signal.Signals) -> None:
    with begun(tmp_path, COMMANDS[what]) as process:
        process.send_signal(number)
        process.communicate(timeout=60)
        assert wait_until(lambda: not working(tmp_path))


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT], ids=["nohup", "a shell's background job"])
def test_a_signal_that_is_ignored_stays_so(tmp_path: Path, number: signal.Signals) -> None:
    with begun(tmp_path, COMMANDS["a program"], number) as process:
        process.send_signal(number)
        assert not wait_until(lambda: process.poll() is not None, 0.5)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        assert wait_until(lambda: not working(tmp_path))


def test_when_the_process_between_is_killed(tmp_path: Path) -> None:
    with begun(tmp_path, COMMANDS["a program of a program"]) as process:
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        for child in children:
            os.kill(int(child), signal.SIGKILL)
        assert "the process that starts it was killed" in process.communicate(timeout=60)[0]
        assert wait_until(lambda: not working(tmp_path))


def test_what_a_program_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    """Else it would run beside all that is measured after."""
    leave = f'"{sys.executable}" spin.py & while ! test -e begun; do sleep 0.05; done'
    with begun(tmp_path, [*COMPARE, "--ignore-output", "sh", "-c", leave]) as process:
        process.communicate(timeout=60)
        assert process.returncode == 0
        assert not working(tmp_path)
