"""`firsttouch run --limit` waits for the program as its parent: signals, ends, and what is told after a kill."""

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import termios

import pytest

from tests.programs import execute, running

from .conftest import FIRSTTOUCH, Start, Write

WAITING = (*FIRSTTOUCH, "run", "-q", "--limit", "1GiB")

WAITS = """
import os, signal, sys
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
    signal.signal(number, lambda number, _: (os.write(1, f'{signal.Signals(number).name}\\n'.encode()), sys.exit(5)))
print("ready", flush=True)
while True:
    signal.pause()
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP])
def test_signals_to_the_command_reach_the_program(write: Write, number: signal.Signals) -> None:
    with running(*WAITING, write("waits.py", WAITS), ready="ready", start_new_session=True) as process:
        process.send_signal(number)
        assert process.communicate(timeout=60)[0] == f"{number.name}\n"
        assert process.returncode == 5


def test_the_terminal_s_keys_reach_the_program_once(write: Write) -> None:
    counts = WAITS.replace("sys.exit(5)", "number == signal.SIGTERM and sys.exit(5)")
    master, slave = pty.openpty()
    enter = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
    command = [sys.executable, "-c", enter, *WAITING, write("counts.py", counts)]
    with running(*command, ready="ready", stdin=slave, start_new_session=True) as process:
        assert process.stdout is not None
        for key, name in [(b"\x03", "SIGINT"), (b"\x1c", "SIGQUIT"), (b"\x03", "SIGINT")]:
            os.write(master, key)
            assert process.stdout.readline() == f"{name}\n"
        process.terminate()
        assert process.communicate(timeout=60)[0] == "SIGTERM\n"
        assert process.returncode == 5
    os.close(master)
    os.close(slave)


def test_where_the_command_is_killed_the_program_is_killed(write: Write) -> None:
    """`subprocess.run(..., timeout=)` kills, and then reads the output until nobody has it open."""
    with running(*WAITING, write("waits.py", WAITS), ready="ready") as process:
        process.kill()
        assert process.communicate(timeout=60)[0] == ""


@pytest.mark.skipif(shutil.which("unshare") is None, reason="no unshare")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_as_the_first_process_of_a_container_it_ends_as_a_shell_does(number: int) -> None:
    first = ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc"]
    if subprocess.run([*first, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no namespaces of processes")
    done = execute(*first, *WAITING, "-c", f"import os; os.kill(os.getpid(), {number})")
    assert done.returncode == 128 + number


def test_where_ended_children_are_ignored_the_status_is_the_program_s(firsttouch: Start) -> None:
    ignore = lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # noqa: E731
    code = "import signal, sys; sys.exit(3 if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN else 4)"
    assert firsttouch("run", "-q", "--limit", "1GiB", "-c", code, preexec_fn=ignore).returncode == 3


STEPS = {
    "programs": """
for _ in range(4):
    subprocess.run([sys.executable, "-c", "import numpy as np; kept = np.ones(30 << 20, np.uint8)"], check=True)
""",
    "workers": """
def work(_):
    global kept
    kept = np.ones(30 << 20, np.uint8)
with multiprocessing.get_context("fork").Pool(3) as pool:
    pool.map(work, range(3))
    pool.close()
    pool.join()
""",
}


@pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS)
def test_what_ended_by_itself_does_not_explain_a_kill(firsttouch: Start, write: Write, steps: str) -> None:
    last = "own = np.ones(20 << 20, np.uint8); os.kill(os.getpid(), signal.SIGKILL)"
    imports = "import multiprocessing, os, signal, subprocess, sys\nimport numpy as np\n"
    done = firsttouch("run", "-q", "--limit", "200MiB", write("steps.py", imports + steps + last))
    assert done.returncode == -signal.SIGKILL
    assert re.findall("process .* held (.*?),", done.stderr) == ["20 MiB"]


def test_a_terminal_gets_messages_that_fit() -> None:
    master, slave = pty.openpty()
    termios.tcsetwinsize(slave, (24, 40))
    subprocess.run([*FIRSTTOUCH, "run", "--limit", "1000", "script.py"], stderr=slave, timeout=60)
    said = os.read(master, 4096).decode()
    assert max(map(len, said.splitlines())) <= 40
    assert said.split() == execute(*FIRSTTOUCH, "run", "--limit", "1000", "script.py").stderr.split()
