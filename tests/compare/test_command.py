"""`firsttouch compare` on real programs, on programs that cannot be compared, and with invalid arguments."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import programs

from .conftest import Compare, Finished, alive

# --- Real programs: one with many page faults, one that only computes, one that an allocator slows down.

Write = Callable[[str, str], Path]

# The second array ends at the heap's top: glibc gives it back at every turn, and all its pages are faulted in again.
FAULTS = """\
import numpy as np
for _ in range(200):
    a = np.empty(3_900_000, np.uint8)
    b = np.empty(3_900_000, np.uint8)
    a[::4096] = b[::4096] = 1
    del a, b
print("done")
"""

COMPUTES = """\
import numpy as np
a = np.ones((500, 500))
for _ in range(5):
    a @ a
"""

ASKS = """\
import numpy as np
for _ in range(30_000):
    np.empty(20_000)[0] = 1
"""


def advice(text: str, kind: str, name: str) -> list[str]:
    """Who is faster, or slower; where this machine is too busy to tell two equal runs apart, nothing was shown."""
    found = json.loads(text)
    noise = found["noise"]
    named: list[str] = found["advice"][kind]
    if name not in named and noise["high"] / noise["low"] > 2:
        pytest.skip(f"this machine is too busy: the default against itself gave {noise}")
    return named


def row(found: dict[str, Any], name: str) -> dict[str, Any]:
    rows: list[dict[str, Any]] = found["contenders"]
    return next(row for row in rows if row["name"] == name)


def test_the_gain_of_a_program_that_faults_is_found(compare: Compare, write: Write, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    write("faults.py", FAULTS)
    done = compare("--runs", 5, "--json", "out.json", "--html", "out.html", "--plot", "out.png", "faults.py", "--quick")
    assert done.returncode == 0, done.stderr
    assert "One run of faults.py --quick takes " in done.stderr  # what went to the program is seen
    assert "to be compared: the default (twice), pool() and tuned glibc." in done.stderr
    text = (tmp_path / "out.json").read_text()
    found = json.loads(text)
    for name in ("the default", "the same again", "pool()", "tuned glibc"):
        assert len(row(found, name)["runs"]) == 5
        assert name in done.stdout
    faults = {name: row(found, name)["runs"][0]["minor_faults"] for name in ("the default", "pool()")}
    assert faults["pool()"] < faults["the default"] / 5
    assert row(found, "pool()")["remark"] is None
    page = (tmp_path / "out.html").read_text()
    assert page.count("<svg") == 2
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    assert "pool()" in advice(text, "faster", "pool()")
    assert "as fast as the default" in done.stdout


def test_a_program_that_computes_gains_nothing(compare: Compare, write: Write) -> None:
    write("computes.py", COMPUTES)
    done = compare("--runs", 5, "-q", "computes.py")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(("No difference", "No gain", "No certain gain"))
    assert done.stderr == ""


def test_an_allocator_that_slows_a_program_down_is_named(compare: Compare, write: Write) -> None:
    write("asks.py", ASKS)
    done = compare("--runs", 5, "--allocator", "guarded()", "--json", "-", "asks.py")
    assert done.returncode == 0, done.stderr
    assert "guarded()" in advice(done.stdout, "slower", "guarded()")
    assert "guarded()" in json.loads(done.stdout)["advice"]["sentences"][-1]


# --- Programs that cannot be compared, and invalid arguments: one line each, and no partial table.


def stopped(done: Finished, *said: str) -> None:
    assert (done.returncode, done.stdout) == (1, "")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("firsttouch: compare: ")
    assert last.endswith("no comparison was made")
    for words in said:
        assert words in done.stderr


def test_a_program_that_fails_shows_its_error(compare: Compare) -> None:
    done = compare("-c", "print('begun'); raise ValueError('no such thing')")
    stopped(done, "ValueError: no such thing", "the program ended with status 1")


def test_a_program_that_is_killed_names_the_signal(compare: Compare) -> None:
    stopped(compare("-c", "import os; os.kill(os.getpid(), 9)"), "was ended by SIGKILL")


def test_a_program_that_never_ends_is_ended(compare: Compare) -> None:
    marker = f"marker-{os.getpid()}-timeout"
    stopped(compare("--timeout", "0.5", "-c", "while True: pass", marker), "did not end within 0.5 s (--timeout)")
    assert not alive(marker)


def test_a_program_that_prints_times_is_told_from_one_that_differs(compare: Compare) -> None:
    done = compare("-c", "import time; print('same'); print(time.time_ns())")
    stopped(done, "output differs between runs", "line 2 is", "--ignore-output")


def test_a_program_that_changes_its_mind_late_is_not_blamed_on_an_allocator(compare: Compare) -> None:
    code = "open('runs', 'a').write('.'); print(len(open('runs').read()) > 2)"
    stopped(compare("-c", code), "output differs between runs", "both under the default")


def test_an_output_that_depends_on_the_allocator_stops(compare: Compare) -> None:
    done = compare("-c", "import os; print('x', 'FIRSTTOUCH_RUN' in os.environ)")
    stopped(done, "line 1 is 'x False\\n' under the default and 'x True\\n' under pool()", "--ignore-output")


def test_ignored_output_may_differ(compare: Compare) -> None:
    done = compare("--ignore-output", "--runs", 1, "-q", "-c", "import time; print(time.time_ns())")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("No conclusion: 1 run of each")


def test_a_program_that_waits_for_a_person_gets_an_end(compare: Compare) -> None:
    stopped(compare("-c", "input()"), "EOFError", "standard input is empty")


def test_standard_input_is_the_same_for_every_run(compare: Compare) -> None:
    code = "import sys; text = sys.stdin.read(); assert text == 'some text', text"
    done = compare("--runs", 1, "-q", "-c", code, stdin=None, input="some text")
    assert done.returncode == 0, done.stderr


def test_a_contender_that_fails_has_a_row_that_says_so(compare: Compare) -> None:
    code = "import os, sys; sys.exit('not under this one' if 'FIRSTTOUCH_RUN' in os.environ else 0)"
    done = compare("--runs", 1, "--allocator", "mimalloc", "-c", code)
    assert done.returncode == 0
    assert "mimalloc: the program ended with status 1" in done.stdout
    assert "pool(): the program ended with status 1: not under this one" in done.stdout
    assert "left out" in done.stdout


def test_a_program_that_never_imports_numpy_is_told(compare: Compare) -> None:
    assert "pool(): NumPy was never imported" in compare("--runs", 1, "-c", "pass").stdout


def test_a_contender_that_never_ends_has_a_row_that_says_so(compare: Compare) -> None:
    code = "import os, time; time.sleep(600 if 'FIRSTTOUCH_RUN' in os.environ else 0)"
    done = compare("--runs", 1, "--timeout", 3, "-c", code)
    assert "pool(): the program did not end within 3 s (--timeout)" in done.stdout


def test_any_command_can_be_compared(compare: Compare, write: Write) -> None:
    write("twice.sh", f"{sys.executable} -c 'import numpy; numpy.ones(10**6)'\n")
    done = compare("--runs", 1, "--", "sh", "twice.sh")
    assert done.returncode == 0, done.stderr
    assert "no process reported" not in done.stdout
    done = compare("--runs", 1, "--", "true")
    assert "pool(): no process reported that it was served" in done.stdout
    assert "preloaded pool: it received no request for a large block" in done.stdout


def test_what_prepare_does_is_done_before_every_run(compare: Compare, tmp_path: Path) -> None:
    done = compare("--runs", 1, "-q", "--prepare", "echo >> runs; touch ready", "-c", "import os; os.remove('ready')")
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "runs").read_text().splitlines()) == 2 * 4
    stopped(compare("--prepare", "echo lost >&2; false", "-c", "pass"), "lost", "--prepare", "ended with status 1")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_ends_the_program_and_leaves_a_line(tmp_path: Path, number: signal.Signals) -> None:
    pytest.importorskip("rich")
    marker = f"marker-{os.getpid()}-{number.name}"
    code = "open('begun', 'w').close()\nwhile True: pass"
    begun = subprocess.Popen(
        [sys.executable, "-m", "firsttouch", "compare", "-c", code, marker],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=programs.environment(),
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),  # under nohup it would be ignored
    )
    try:
        until = time.monotonic() + 60
        while not (tmp_path / "begun").exists() and time.monotonic() < until:
            time.sleep(0.02)
        begun.send_signal(number)
        out, error = begun.communicate(timeout=60)
    finally:
        begun.kill()
    assert (begun.returncode, out) == (130, "")
    assert error == "firsttouch: compare: interrupted at 0 %; no results were written\n"
    assert not alive(marker)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "missing program"),
        (["-q"], "missing program"),
        (["nope.py"], "no program nope.py here"),
        (["--", "no-such-command"], "no command no-such-command"),
        (["--run", "3", "s.py"], "did you mean --runs?"),
        (["--runs", "0", "s.py"], "--runs: takes a number"),
        (["--runs", "s.py"], "--runs: takes a number"),
        (["--runs", "3", "--budget", "1m", "s.py"], "exclude each other"),
        (["--budget", "soon", "s.py"], "'soon' is not a duration"),
        (["--budget", "5", "m", "s.py"], "write a duration as one word"),
        (["--timeout", "-1", "s.py"], "--timeout"),
        (["--allocator", "pol()", "s.py"], "did you mean pool?"),
        (["--allocator", "malloc()", "s.py"], "--allocator: install() cannot take malloc()"),
        (["python", "s.py"], "omit python"),
        (["-X", "dev", "s.py"], "-X is an option of python"),
        (["--plot", "no/such/x.png", "s.py"], "no such directory"),
        (["--html", "no/such/x.html", "s.py"], "no such directory"),
        (["--json", "/proc/x.json", "s.py"], "cannot write /proc/x.json"),
        (["--html", "s.py"], "--html takes a file to write"),
        (["--plot", "x.foo", "s.py"], "unknown picture format .foo"),
        (["--plot", "x", "s.py"], "the file name has no extension"),
        (["--html", ".", "s.py"], "is a directory"),
        (["--json", "x", "--html", "x", "s.py"], "name the same file"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_mistake_gets_one_line_before_anything_runs(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("rich")
    pytest.importorskip("matplotlib")
    from firsttouch.tools.cli.main import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.py").write_text("open('it-ran', 'w')")
    assert main(["compare", *words]) == 2
    found = capfd.readouterr()
    assert not (tmp_path / "it-ran").exists()
    assert found.out == ""
    assert found.err.startswith("firsttouch: compare: ")
    assert found.err.count("\n") == 1
    assert said in found.err


@pytest.mark.parametrize("command", ["compare -c 1", "advise -c 1", "trace --summary -c 1", "bench triad"])
def test_without_rich_one_line_says_what_to_install(command: str) -> None:
    code = f"""
        import sys
        sys.modules["rich"] = None
        from firsttouch.tools.cli.main import main
        sys.exit(main({command.split()}))
    """
    done = programs.start(code, prologue="")
    assert (done.returncode, done.stdout) == (2, "")
    said = f"firsttouch: {command.split()[0]} needs rich: python -m pip install rich\n"
    assert done.stderr == said
