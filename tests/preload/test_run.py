"""`firsttouch run PROGRAM`: any executable, and Python programs with --all."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import FIRSTTOUCH
from tests.preload.starting import PROGRAMS, Bench
from tests.programs import Finished, execute, running


def run(*words: object, **options: Any) -> Finished:
    return execute(*FIRSTTOUCH, "run", *words, **options)


def test_the_report_says_what_was_gained(bench: Bench) -> None:
    done = run(bench.compiled("dense"))
    assert (done.returncode, len(done.stdout.split())) == (0, 2)
    assert re.match(
        r"firsttouch, process \d+: [\d.]+( m?s)? to [\d.]+ m?s gained \([\d.]+( %)? to [\d.]+ %\)\n  time  ",
        done.stderr,
    )
    assert re.search(r"  large blocks   16, \d[\d.]* % on recycled memory\n", done.stderr)
    assert re.search(r"  fresh memory   at most \d+(\.\d+)? MiB.*; \d+(\.\d+)? MiB reused\n", done.stderr)
    assert "; at most " in done.stderr


def test_the_report_says_that_nothing_was_gained() -> None:
    done = run("echo", "some words")
    assert (done.returncode, done.stdout) == (0, "some words\n")
    assert done.stderr.splitlines()[0].endswith(": nothing gained, no blocks of 128 KiB or more")
    assert run("-q", "echo").stderr == ""


def test_programs_that_close_their_streams_are_reported_on(bench: Bench) -> None:
    """As sort and its like do, from a function that exit calls; dash ends by _exit."""
    for command in (("sort",), ("dash", "-c", "exit 3")):
        assert shutil.which(command[0]) is None or "large blocks" in run(*command, input="b\na\n").stderr


@pytest.mark.parametrize(
    ("how", "times", "status", "printed"),
    [
        *(("now", 1, 3, ""), ("signal", 5, 4, ""), ("children", 1, 6, "not flushed"), ("exit", 12, 7, "not flushed")),
        *(("together", 16, 9, ""), ("last", 1, 0, "not flushed, finished")),
    ],
)
def test_programs_that_end_in_ways_of_their_own_report_once(
    bench: Bench, how: str, times: int, status: int, printed: str
) -> None:
    for _ in range(times):
        done = run(bench.compiled("leaving"), how, timeout=60)
        assert (done.returncode, done.stdout) == (status, printed)
        # What a signal interrupted may hold a lock for ever: then the program ends without a report, but it ends.
        assert done.stderr.count("large blocks   ") == 1 or (how in ("signal", "exit") and not done.stderr)


def test_a_thread_that_waits_for_input_delays_no_report(bench: Bench) -> None:
    """It holds the lock of standard input."""
    silent, speaking = os.pipe()
    done = run("--json", "-", bench.compiled("leaving"), "waiting", stdin=silent)
    os.close(silent)
    os.close(speaking)
    assert (done.returncode, done.stdout.startswith("not flushed{")) == (10, True)


def test_a_report_that_cannot_be_written_leaves_the_status_alone(bench: Bench, tmp_path: Path) -> None:
    """A pipe that nobody reads and a file that may not grow are signals to who writes."""
    command = [*FIRSTTOUCH, "run", "--json", str(tmp_path / "report"), bench.compiled("dense")]
    unread, pipe = os.pipe()
    os.close(unread)
    limited = ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *command]
    done = execute(*limited, capture_output=False, stdout=subprocess.PIPE, stderr=pipe)
    assert (done.returncode, len(done.stdout.split())) == (0, 2)


def test_a_program_that_brings_an_allocator_is_said_to_be_left_alone(bench: Bench) -> None:
    done = run(bench.compiled("own"))
    assert (done.returncode, done.stdout) == (0, "own\n")
    assert re.match(r"firsttouch, process \d+: not pooled\n", done.stderr)
    assert done.stderr.endswith("  not pooled: the program brings a malloc of its own, in own\n")


def test_no_report_in_files_of_the_program(bench: Bench, tmp_path: Path) -> None:
    """It may close all descriptors, and get any number for a file."""
    file = tmp_path / "data"
    done = run("--json", "-", bench.compiled("taken"), str(file))
    assert done.returncode == 0
    assert done.stdout.startswith("open in the child\n{")
    assert done.stderr.startswith("firsttouch, process ")
    assert file.read_bytes() == b""


def test_json(bench: Bench, tmp_path: Path) -> None:
    file = tmp_path / "report.json"
    done = run("--json", str(file), "-q", bench.compiled("idle"), "3", "508", "4")
    assert (done.returncode, done.stderr) == (0, "")
    report = json.loads(file.read_text())
    assert report["main_process"] is True
    assert report["command"] == [bench.compiled("idle"), "3", "508", "4"]
    assert report["pool"]["allocations"] == 12
    recycled = report["pool"]["recycled_bytes"]
    assert recycled >= 1 << 20
    assert recycled % (512 << 10) == 0  # 508 KiB, and where in the first page they begin
    assert set(report["gain"]) == {"faults", "seconds", "share"}
    assert set(report["seconds"]) == {"wall", "user", "kernel"}
    on_stdout = run("--json", "-", "-q", bench.compiled("secure", "-DSECURE=0")).stdout
    assert json.loads(on_stdout.partition("\n")[2])["pool"]["allocations"] == 1


def test_each_process_can_write_its_own_report(bench: Bench, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\n{bench.compiled('idle')} 1 300 1\n{bench.compiled('idle')} 1 300 2\necho $0 $1\n")
    script.chmod(0o755)
    done = run("--json", str(tmp_path / "of-%p.json"), str(script), "word")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, f"{script} word")
    reports = [json.loads(file.read_text()) for file in tmp_path.glob("of-*.json")]
    assert sorted(report["pool"]["allocations"] for report in reports) == [0, 1, 2]
    assert [report["main_process"] for report in reports if report["pool"]["allocations"] == 0] == [True]


def test_a_script_is_not_what_its_processes_are(bench: Bench, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\n{bench.compiled('dense')}\n")
    script.chmod(0o755)
    done = run(str(script))
    assert re.search(r"child processes used \S+ m?s and are not in this report; --json with %p", done.stderr)
    assert done.stderr.splitlines()[0].endswith(": most of the work was done by child processes")
    assert run("--limit", "1GiB", str(script)).stderr.endswith("is not one\n")


def test_options_reach_the_library(bench: Bench) -> None:
    serves = bench.compiled("secure", "-DSECURE=0")
    for words, served in ("threshold=2097152", "C library"), ("max_idle=1048576 decay=never", "pool"):
        assert run("-q", serves, env={"FIRSTTOUCH_PRELOAD": words}).stdout == f"{served}\n"


def test_what_is_preloaded_already_stays_so(bench: Bench) -> None:
    done = run("-q", "sh", "-c", "echo $LD_PRELOAD", env={"LD_PRELOAD": "/no/such.so"})
    assert re.fullmatch(r"\S+/libfirsttouch_preload\.so:/no/such\.so\n", done.stdout)


def test_the_process_is_the_program(bench: Bench) -> None:
    with running(*FIRSTTOUCH, "run", "sh", "-c", "echo $$; kill -TERM $$") as process:
        said, _ = process.communicate(timeout=60)
    assert (int(said), process.returncode) == (process.pid, -signal.SIGTERM)


def test_what_python_changes_for_itself_is_not_inherited() -> None:
    for name, number in [("PIPE", signal.SIGPIPE), ("XFSZ", signal.SIGXFSZ)]:
        assert run("-q", "sh", "-c", f"kill -{name} $$").returncode == -number


def test_programs_that_cannot_be_served(bench: Bench) -> None:
    path = bench.compiled("sparse", "-static")
    done = run(path)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"firsttouch: run: cannot serve {path}: it is linked statically, so its malloc")
    assert "--allocator is for Python programs" in run("--allocator", "mimalloc()", "echo").stderr


def test_a_missing_library_is_explained(tmp_path: Path) -> None:
    code = """
import sys
from firsttouch.tools import preload
preload.FILE = "/nowhere/libfirsttouch_preload.so"
from firsttouch.tools.cli.main import main
sys.exit(main(["run", "echo"]))
"""
    done = execute(sys.executable, "-c", code)
    assert done.returncode == 2
    assert done.stderr.endswith("in a checkout, `make preload` builds it\n")


def test_everything_of_a_python_program(tmp_path: Path) -> None:
    code = """
import numpy as np
for _ in range(50):
    data = bytearray(2_000_000)
    a = np.ones(300_000) * 2
print(a.sum(), len(data))
"""
    done = run("--all", "-c", code)
    assert (done.returncode, done.stdout) == (0, "600000.0 2000000\n")
    (report,) = done.stderr.split("firsttouch, process ")[1:]
    assert re.search(r"large blocks   1\d\d, \d+(\.\d)? % on recycled memory", report), "of both kinds, and once"
    without = run("--all", "-c", "data = [bytearray(2_000_000) for _ in range(5)]").stderr
    assert without.count("firsttouch, process ") == 1
    assert re.search(r"large blocks   [5-9],", without), "NumPy or not"
    assert run("--all", "-q", "-c", "print(1)").stderr == ""


def test_everything_gains_what_numpys_arrays_gain(tmp_path: Path) -> None:
    """NumPy asks for huge pages by itself: plainly, each array of 40 MB takes some 500 page faults, and not 10,000."""

    def faults(*options: str) -> int:
        code = "import numpy as np\nfor _ in range(20): a = np.ones(5_000_000)"
        assert run(*options, "-q", "--json", "report.json", "-c", code, cwd=tmp_path).returncode == 0
        return int(json.loads((tmp_path / "report.json").read_text())["gain"]["faults"])

    assert faults("--all") < 1.5 * faults() + 1000


def test_an_allocator_of_the_arrays_beside_the_preloaded_pool() -> None:
    code = "import numpy as np, firsttouch as ft; print(ft.get_allocator(np.empty(10**6)))"
    done = run("--all", "--allocator", "mimalloc", "-c", code)
    assert (done.returncode, done.stdout) == (0, "mimalloc()\n")
    assert done.stderr.count("firsttouch, process ") == 1


def test_a_folder_of_a_command_s_name_is_not_run(tmp_path: Path) -> None:
    (tmp_path / "echo").mkdir()
    assert run("-q", "echo", "a word", cwd=tmp_path).stdout == "a word\n"
    (tmp_path / "echo" / "__main__.py").write_text("print('of the folder')")
    assert run("-q", "echo", cwd=tmp_path).stdout == "of the folder\n"


def test_a_program_needs_little_of_the_package_to_start() -> None:
    said = execute(sys.executable, "-X", "importtime", "-m", "firsttouch", "run", "true").stderr
    loaded = {line.rpartition("|")[2].strip() for line in said.splitlines() if line.startswith("import time:")}
    assert not loaded & {"argparse", "re", "numpy", "pathlib", "shutil", "firsttouch._firsttouch", "firsttouch._public"}


def test_scripts_of_python_are_python_s(tmp_path: Path) -> None:
    script = tmp_path / "tool"
    script.write_text(f"#!{sys.executable}\nimport numpy, sys\nprint(sum(numpy.ones(100_000)), sys.argv[1:])\n")
    script.chmod(0o755)
    done = run(str(script), "a")
    assert done.stdout == "100000.0 ['a']\n"
    assert "large blocks" in done.stderr
    script.write_text(f"#!/bin/sh\n'''exec' {sys.executable} \"$0\" \"$@\"\n' '''\n{script.read_text()}")
    assert "large blocks" in run(str(script), "a").stderr, "as pip writes scripts where Python's path is too long"
    assert "omit python3" in run("python3", "x.py").stderr
    assert PROGRAMS.is_dir()
