"""`firsttouch run PROGRAM`: any executable, and Python programs with --all."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.preload.starting import PROGRAMS, Bench, has_huge_pages
from tests.programs import environment

Finished = subprocess.CompletedProcess[str]


def run(*words: str, env: dict[str, str] | None = None, **options: object) -> Finished:
    given: dict[str, object] = {"capture_output": True, "text": True, "timeout": 120, "check": False, **options}
    command = [sys.executable, "-m", "firsttouch", "run", *words]
    return subprocess.run(command, env=environment(**(env or {})), **given)  # type: ignore[call-overload, no-any-return]


def test_the_report_says_what_was_gained(bench: Bench) -> None:
    done = run(bench.compiled("dense"))
    assert (done.returncode, len(done.stdout.split())) == (0, 2)
    assert re.match(r"firsttouch, process \d+:\n  time  ", done.stderr)
    assert "large blocks   16, 75 % on recycled memory\n" in done.stderr
    on_huge = " (50 % on huge pages)" if has_huge_pages() else ""
    assert f"first touched  at most 128 MiB{on_huge}, 384 MiB avoided\n" in done.stderr
    avoided = 98_304 + (16_384 - 32 if on_huge else 0)
    assert f"; at most {avoided:,} avoided\n" in done.stderr


def test_the_report_says_that_nothing_was_gained() -> None:
    done = run("echo", "some words")
    assert (done.returncode, done.stdout) == (0, "some words\n")
    assert "nothing gained: the program allocates no blocks of 128 KiB or more" in done.stderr
    assert run("-q", "echo").stderr == ""


def test_programs_that_close_their_streams_are_reported_on(bench: Bench) -> None:
    """As sort and its like do, from a function that exit calls."""
    if shutil.which("sort") is None:
        pytest.skip("no sort")
    assert "large blocks" in run("sort", input="b\na\n").stderr


@pytest.mark.parametrize(("how", "status"), [("now", 3), ("signal", 4), ("children", 6), ("quick", 8)])
def test_programs_that_end_by_exit_with_an_underscore_are_reported_on(bench: Bench, how: str, status: int) -> None:
    for _ in range(5 if how == "signal" else 1):
        done = run(bench.compiled("leaving"), how, timeout=30)
        assert done.returncode == status
        assert done.stdout == ("not flushed" if how == "children" else "")
        # What a signal interrupted may hold a lock for ever: then the program ends without a report, but it ends.
        assert done.stderr.count("large blocks   ") == 1 or (how == "signal" and not done.stderr), done.stderr
    if shutil.which("dash") is not None:
        assert "large blocks" in run("dash", "-c", "exit 3").stderr


def test_programs_that_exit_in_a_handler_end(bench: Bench) -> None:
    for _ in range(12):
        done = run(bench.compiled("leaving"), "exit", timeout=30)
        assert (done.returncode, done.stdout) == (7, "not flushed")
        assert done.stderr.count("large blocks   ") <= 1


def test_threads_that_end_the_program_together_report_once(bench: Bench) -> None:
    for _ in range(16):
        done = run(bench.compiled("leaving"), "together", timeout=30)
        assert (done.returncode, done.stderr.count("large blocks   ")) == (9, 1)


def test_a_thread_that_waits_for_input_delays_no_report(bench: Bench) -> None:
    """It holds the lock of standard input."""
    command = [sys.executable, "-m", "firsttouch", "run", "--json", "-", bench.compiled("leaving"), "waiting"]
    silent, speaking = os.pipe()
    done = subprocess.run(
        command, stdin=silent, capture_output=True, text=True, timeout=30, env=environment(), check=False
    )
    os.close(silent)
    os.close(speaking)
    assert (done.returncode, done.stdout.startswith("not flushed{")) == (10, True)


def test_the_report_follows_what_the_program_printed(bench: Bench) -> None:
    done = run(
        bench.compiled("leaving"), "children", stderr=subprocess.STDOUT, capture_output=False, stdout=subprocess.PIPE
    )
    assert done.stdout.startswith("not flushedfirsttouch, process ")


def test_a_report_that_cannot_be_written_leaves_the_status_alone(bench: Bench, tmp_path: Path) -> None:
    """A pipe that nobody reads and a file that may not grow are signals to who writes."""
    command = [sys.executable, "-m", "firsttouch", "run", "--json", str(tmp_path / "report"), bench.compiled("dense")]
    unread, pipe = os.pipe()
    os.close(unread)
    limited = ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *command]
    done = subprocess.run(limited, stdout=subprocess.PIPE, stderr=pipe, env=environment(), check=False)
    assert (done.returncode, len(done.stdout.split())) == (0, 2)


def test_no_report_in_files_of_the_program(bench: Bench, tmp_path: Path) -> None:
    """It may close what it knows nothing of, the report's copy of a stream too, and get its number for a file."""
    file = tmp_path / "data"
    done = run("--json", "-", bench.compiled("taken"), str(file))
    assert (done.returncode, done.stdout, done.stderr) == (0, "open in the child\n", "")
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
    assert report["estimates"]["avoided_bytes"] == recycled
    assert report["estimates"]["avoided_faults"] == recycled // os.sysconf("SC_PAGE_SIZE")
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


def test_any_name_of_a_report(bench: Bench, tmp_path: Path) -> None:
    folder = tmp_path / "of %p"
    folder.mkdir()
    for name, file in [("a b.json", b"a b.json"), ("%%p%x.json", b"%p%x.json"), ("caf\udce9.json", b"caf\xe9.json")]:
        assert run("-q", "--json", name, bench.compiled("idle"), "1", "300", "1", cwd=folder).returncode == 0
        path = os.path.join(os.fsencode(folder), file)
        assert json.loads(Path(os.fsdecode(path)).read_text())["pool"]["allocations"] == 1
    assert len(list(folder.iterdir())) == 3


def test_a_script_is_not_what_its_processes_are(bench: Bench, tmp_path: Path) -> None:
    script = tmp_path / "script"
    script.write_text(f"#!/bin/sh\n{bench.compiled('dense')}\n")
    script.chmod(0o755)
    done = run(str(script))
    assert re.search(r"child processes used \S+ m?s and are not in this report; --json with %p", done.stderr)
    assert "nothing gained" not in done.stderr
    done = run("--limit", "1GiB", str(script))
    assert done.stderr.endswith("is not one; in the script, write firsttouch run in place of python\n")


def test_options_reach_the_library(bench: Bench) -> None:
    serves = bench.compiled("secure", "-DSECURE=0")
    assert run("-q", "--threshold", "2 MiB", serves).stdout == "C library\n"
    assert run("-q", "--max-idle", "1 MiB", "--decay", "never", serves).stdout == "pool\n"


def test_what_is_preloaded_already_stays_so(bench: Bench) -> None:
    done = run("-q", "sh", "-c", "echo $LD_PRELOAD", env={"LD_PRELOAD": "/no/such.so"})
    assert re.fullmatch(r"\S+/libfirsttouch_preload\.so:/no/such\.so\n", done.stdout)


def test_the_process_is_the_program(bench: Bench) -> None:
    command = [sys.executable, "-m", "firsttouch", "run", "sh", "-c", "echo $$; kill -TERM $$"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment()) as process:
        said, _ = process.communicate(timeout=60)
    assert (int(said), process.returncode) == (process.pid, -signal.SIGTERM)


def test_what_python_changes_for_itself_is_not_inherited() -> None:
    """It ignores two signals, and sets LC_CTYPE where the locale is C."""
    for name, number in [("PIPE", signal.SIGPIPE), ("XFSZ", signal.SIGXFSZ)]:
        assert run("-q", "sh", "-c", f"kill -{name} $$").returncode == -number
    without = {name: value for name, value in environment().items() if not name.startswith(("LC_", "LANG"))}
    code = "from firsttouch.tools.compare.candidates import *; print(environment(DEFAULT).get('LC_CTYPE', 'none'))"
    of_run = ["-m", "firsttouch", "run", "-q", "sh", "-c", "echo ${LC_CTYPE-none}"]
    for given, expected in [({}, "none"), ({"LC_CTYPE": "C"}, "C"), ({"LC_CTYPE": "C.UTF-8"}, "C.UTF-8")]:
        for words in (of_run, ["-c", code]):
            said = subprocess.run([sys.executable, *words], env=without | given, stdout=subprocess.PIPE, check=True)
            assert said.stdout == f"{expected}\n".encode()


def test_programs_that_cannot_be_served(bench: Bench, tmp_path: Path) -> None:
    def refused(path: str) -> str:
        done = run(path)
        assert (done.returncode, done.stdout) == (2, "")
        return done.stderr.removeprefix(f"firsttouch: run: cannot serve {path}: ")

    gcc = shutil.which("gcc")
    assert gcc is not None or bench.compiled("sparse")
    assert refused(bench.compiled("sparse", "-static")) == "it is linked statically, so its malloc cannot be replaced\n"
    content = Path(bench.compiled("sparse")).read_bytes()
    for name, old, new, why in [
        ("musl", b"/lib64/ld-linux-x86-64.so.2", b"/lib/ld-musl-x86_64.so.1\0\0\0", "it is linked against musl"),
        ("other", content[:20], content[:18] + b"\x28\0", "it is built for another architecture"),
        ("asan", b"\0libc.so.6\0", b"\0libasan.so.8\0", "it is built with AddressSanitizer"),
    ]:
        if old in content:
            (tmp_path / name).write_bytes(content.replace(old, new, 1))
            (tmp_path / name).chmod(0o755)
            assert refused(str(tmp_path / name)).startswith(why)
    assert "--allocator is for Python programs" in run("--allocator", "mimalloc()", "echo").stderr
    assert "--threshold is for programs other than Python's" in run("--threshold", "1 MiB", "-c", "pass").stderr


def test_a_missing_library_is_explained(tmp_path: Path) -> None:
    code = """
import sys
from firsttouch.tools import preload
from pathlib import Path
preload.FILE = Path("/nowhere/libfirsttouch_preload.so")
from firsttouch.tools.cli.main import main
sys.exit(main(["run", "echo"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment(), check=False)
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
    assert "NumPy was never imported" in without
    assert re.search(r"large blocks   [5-9],", without), "then the library reports"
    assert run("--all", "-q", "-c", "print(1)").stderr == ""


def test_arrays_and_other_blocks_share_a_pool() -> None:
    code = """
import numpy as np, firsttouch as ft
a = np.ones(24 << 17)
del a
before = ft.stats()
data = bytearray(20 << 20)
after = ft.stats()
print(before.idle >> 20, after.recycled_bytes - before.recycled_bytes >> 20, after.in_use - before.in_use >> 20)
del data
b, small = ft.zeros(3 << 20, "u1"), ft.ones(100, "u1")
b.resize(5 << 20, refcheck=False)
print(b.sum(), small.sum(), ft.trim() >> 20, ft.stats().idle)
with ft.use("tracked()") as tracked:
    c = np.ones(1 << 20)
print(ft.stats("tracked()") is not None, c.sum())
ft.uninstall()
d = np.ones(1 << 20)
ft.install()
del c, d
print(ft.get_allocator())
"""
    done = run("--all", "--max-idle", "1 GiB", "--decay", "never", "-q", "-c", code)
    assert done.returncode == 0, done.stderr
    shared, made, *_ = done.stdout.splitlines()
    idle, recycled, used = map(int, shared.split())
    assert (idle >= 24, recycled >= 20, used) == (True, True, 20), done.stdout
    assert made.split()[:2] == ["0", "100"], done.stdout
    trimmed, left = map(int, made.split()[2:])
    assert (trimmed >= 16, left < 5 << 20) == (True, True), done.stdout


def test_scripts_of_python_are_python_s(tmp_path: Path) -> None:
    script = tmp_path / "tool"
    script.write_text(f"#!{sys.executable}\nimport numpy, sys\nprint(sum(numpy.ones(100_000)), sys.argv[1:])\n")
    script.chmod(0o755)
    done = run(str(script), "a")
    assert done.stdout == "100000.0 ['a']\n"
    assert "large arrays" in done.stderr
    script.write_text(f"#!/bin/sh\n'''exec' {sys.executable} \"$0\" \"$@\"\n' '''\n{script.read_text()}")
    assert "large arrays" in run(str(script), "a").stderr, "as pip writes scripts where Python's path is too long"
    assert "omit python3" in run("python3", "x.py").stderr
    assert PROGRAMS.is_dir()


def test_an_interpreter_in_a_folder_called_python_is_not_python(tmp_path: Path) -> None:
    shell = shutil.which("sh")
    assert shell is not None
    folder, script = tmp_path / "python-3", tmp_path / "tool"
    folder.mkdir()
    (folder / "sh").symlink_to(shell)
    script.write_text(f"#!{folder}/sh -u\necho $1\n")
    script.chmod(0o755)
    assert run("-q", str(script), "a").stdout == "a\n"
