"""`firsttouch bench`: what it lists, rejects, prints and writes."""

import json
import signal
import subprocess
from pathlib import Path

import pytest

from firsttouch.tools.cli import output
from tests.probe import wait_until
from tests.programs import running

from .conftest import FIRSTTOUCH, Start, working

pytest.importorskip("rich", reason="the commands that measure need rich")


def test_tables_answers_and_files_come_from_one_run(firsttouch: Start, tmp_path: Path) -> None:
    done = firsttouch("bench", "triad", "--quick", "--sizes", "1MiB", "--json", "found.json")
    assert done.returncode == 0, done.stderr
    assert "MFlop/s" in done.stdout
    assert "The zero-page trap" in done.stdout
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["machine"]["system"]
    (section,) = found["experiments"]
    assert section["name"] == "triad"
    assert section["tables"][0]["rows"]
    assert section["raw"]


def test_a_log_says_how_far_it_is(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    bar = output.Progress("triad")
    bar.done(0.3)
    monkeypatch.setattr(output, "_SILENCE", -1.0)
    bar.done(0.45)
    output.Progress("triad", quiet=True).done(0.45)
    assert capfd.readouterr().err == "triad: 45 % done\n"


def test_ctrl_c_ends_it_with_one_line_and_leaves_no_worker(tmp_path: Path) -> None:
    words = ("bench", "triad", "--sizes", "64MiB")
    with running(*FIRSTTOUCH, *words, stderr=subprocess.PIPE, cwd=tmp_path) as process:
        wait_until(lambda: len(working(tmp_path)) > 1 or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said == "firsttouch: bench: interrupted in triad; no file is written\n"
    assert wait_until(lambda: not working(tmp_path))  # the kernel ends a worker that was just being started
