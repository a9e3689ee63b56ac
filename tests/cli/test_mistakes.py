"""Errors are reported in one line that names the cause."""

import io
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from firsttouch.tools.cli import info
from firsttouch.tools.measuring import sizes

from .conftest import Start, clean_environment

Write = Callable[[str, str], Path]

#: The command line where NumPy is not installed.
WITHOUT = """
import sys
sys.modules["numpy"] = None
from _firsttouch_start.command_line import main
raise SystemExit(main())
"""


def test_a_run_that_ends_before_it_began(firsttouch: Start) -> None:
    done = firsttouch("compare", "--timeout", "0.001", "-c", "pass")
    said = "firsttouch: compare: the program did not end within 0.001 s (--timeout); no comparison was made\n"
    assert (done.returncode, done.stderr) == (1, said)


@pytest.mark.parametrize("words", [["compare", "-c", "pass"], ["bench", "touch", "--quick"], ["replay", "one.ft"]])
def test_without_numpy(python: Start, firsttouch: Start, words: list[str]) -> None:
    firsttouch("trace", "-q", "-o", "one.ft", "-c", "import numpy as np; np.ones(30000)")
    done = python("-c", WITHOUT, *words)
    assert done.returncode == 2
    assert done.stderr == f"firsttouch: {words[0]} needs numpy: python -m pip install numpy\n"


def test_ctrl_c_in_a_replay_is_answered(firsttouch: Start, write: Write, tmp_path: Path) -> None:
    firsttouch("trace", "-q", "-o", "one.ft", "-c", "import numpy as np\nfor _ in range(200000): np.ones(30000)")
    command = [sys.executable, "-m", "firsttouch", "replay", "one.ft"]
    playing = subprocess.Popen(
        command, cwd=tmp_path, env=clean_environment(), stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    children = Path(f"/proc/{playing.pid}/task/{playing.pid}/children")
    while not children.read_text():
        time.sleep(0.05)
    time.sleep(0.5)
    playing.send_signal(signal.SIGINT)
    _, said = playing.communicate(timeout=60)
    assert (playing.returncode, said) == (130, "firsttouch: replay: interrupted\n")


@pytest.mark.parametrize(
    ("nbytes", "said"), [(1 << 50, "1 PiB"), (3 << 29, "1.5 GiB"), (7 << 19, "3.5 MiB"), (1000, "1,000 bytes")]
)
def test_sizes_are_written_out(nbytes: int, said: str) -> None:
    assert sizes.name(nbytes) == said


def test_an_unmounted_proc_is_no_good_news(tmp_path: Path) -> None:
    said = info.look(tmp_path)["meaning"]
    assert any("/proc" in sentence for sentence in said)
    assert not any("no transparent huge pages" in sentence for sentence in said)


def test_sentences_are_not_broken_within_words() -> None:
    rich = pytest.importorskip("rich.console")
    from firsttouch.tools.measuring.console import say

    stream = io.StringIO()
    console = rich.Console(file=stream, width=40, highlight=False, markup=False, force_terminal=True, color_system=None)
    text = "a note of some words that is longer than the terminal is wide by far"
    say(text, console, "- ")
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= 40
    assert [line[:2] for line in lines] == ["- ", "  "]
    assert " ".join(line[2:] for line in lines) == text
