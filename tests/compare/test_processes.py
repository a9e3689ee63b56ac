"""One measured run: the kernel's counts, however it ended; and no measured process outlives the command."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firsttouch.tools.measuring.processes import Run, once
from tests import programs
from tests.probe import wait_until

from .conftest import alive

# --- One measured run: the kernel's counts, however it ended.


def run(folder: Path, *command: str) -> Run:
    return once(command, dict(os.environ), os.devnull, str(folder / "out"), str(folder / "err"))


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


# --- No measured process outlives the command, however the command ends.

#: Ignores whatever can be ignored, says that it has begun, and spins.
SPIN = """
import pathlib, signal, sys
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
pathlib.Path('begun').touch()
while True: pass
"""

#: The spinning program is a grandchild here.
SHELL = f'"{sys.executable}" spin.py MARKER & wait'

WORKER = """
from firsttouch.tools.measuring.contenders import NUMPY
from firsttouch.tools.measuring.processes import Call, ask
ask(NUMPY, [Call("runpy", "run_path", {"path_name": "spin.py"})])
"""

COMPARE = ["-m", "firsttouch", "compare", "--runs", "1"]
COMMANDS = {
    "a program": [*COMPARE, "spin.py", "MARKER"],
    "a program of a program": [*COMPARE, "sh", "-c", SHELL],
    "a worker": ["-c", WORKER],
}

Begin = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    pytest.importorskip("rich")
    (tmp_path / "spin.py").write_text(SPIN)
    begun = []

    def start(words: list[str], ignored: tuple[signal.Signals, ...] = (), **options: int) -> subprocess.Popen[str]:
        """The command, when its program spins; signals as a terminal has them, whatever pytest was started under."""

        def settle() -> None:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_IGN if number in ignored else signal.SIG_DFL)

        command = [sys.executable, *(word.replace("MARKER", marker(tmp_path)) for word in words)]
        settings: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
        } | options
        process: subprocess.Popen[str] = subprocess.Popen(
            command, text=True, cwd=tmp_path, env=programs.environment(), preexec_fn=settle, **settings
        )
        begun.append(process)
        wait_until(lambda: (tmp_path / "begun").exists() or process.poll() is not None, 60)
        assert (tmp_path / "begun").exists(), process.communicate()[0] if process.poll() is not None else "too slow"
        return process

    yield start
    for process in begun:
        process.kill()
        process.wait()
    for pid in spinning(tmp_path):
        os.kill(pid, signal.SIGKILL)


def marker(folder: Path) -> str:
    return f"marker-{os.getpid()}-{folder.name}"


def spinning(folder: Path) -> list[int]:
    """Processes that work in the folder."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "cwd").samefile(folder):
                found.append(int(process.name))
        except OSError:
            continue
    return found


def _all_end(folder: Path) -> bool:
    return wait_until(lambda: not spinning(folder) and not alive(marker(folder)), 60)


@pytest.mark.parametrize(
    ("what", "number"),
    [
        *((what, signal.SIGKILL) for what in COMMANDS),
        ("a program of a program", signal.SIGTERM),
        ("a program", signal.SIGHUP),
        ("a worker", signal.SIGINT),
    ],
)
def test_nothing_outlives_the_command(begin: Begin, tmp_path: Path, what: str, number: signal.Signals) -> None:
    process = begin(COMMANDS[what])
    process.send_signal(number)
    process.communicate(timeout=60)
    assert _all_end(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT], ids=["nohup", "a shell's background job"])
def test_a_signal_that_is_ignored_stays_so(begin: Begin, tmp_path: Path, number: signal.Signals) -> None:
    process = begin(COMMANDS["a program"], (number,))
    process.send_signal(number)
    assert not wait_until(lambda: process.poll() is not None, 0.5)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert _all_end(tmp_path)


def test_when_the_process_between_is_killed(begin: Begin, tmp_path: Path) -> None:
    process = begin(COMMANDS["a program of a program"])
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for child in children:
        os.kill(int(child), signal.SIGKILL)
    said = process.communicate(timeout=60)[0]
    assert "the process that starts it was killed" in said
    assert _all_end(tmp_path)


def test_what_a_program_leaves_behind_ends_with_it(begin: Begin, tmp_path: Path) -> None:
    """Else it would run beside all that is measured after."""
    leave = f'"{sys.executable}" spin.py {marker(tmp_path)} & while ! test -e begun; do sleep 0.05; done'
    process = begin([*COMPARE, "--ignore-output", "sh", "-c", leave])
    process.communicate(timeout=60)
    assert process.returncode == 0
    assert not spinning(tmp_path)
