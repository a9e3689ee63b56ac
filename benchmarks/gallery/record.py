"""Runs one program under `firsttouch advise` and `firsttouch compare`, and keeps what they print and measure."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Sequence
from datetime import date
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.gallery.catalogue import Program
from firsttouch.tools.measuring.contenders import NUMPY

COLUMNS, LINES = 80, 40


class RunError(Exception):
    """A command that failed; the message contains what it printed."""


def on_terminal(command: Sequence[str], folder: Path) -> str:
    """Return what a command prints, both streams, on a terminal of 80 columns that knows neither colours nor bars."""
    near, far = pty.openpty()
    fcntl.ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    # In one thread, so that other programs on a small machine disturb them less.
    environment = {**NUMPY.full_environment(), "TERM": "dumb"}
    said = b""
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=far, stderr=far
    ) as child:
        os.close(far)
        try:
            while part := os.read(near, 1 << 16):
                said += part
        except OSError:  # how Linux says that nothing has the terminal open any more
            pass
        finally:
            os.close(near)
    lines = said.decode("utf-8").replace("\r\n", "\n").rstrip().split("\n")
    text = "\n".join(line.rstrip() for line in lines)
    if child.returncode != 0:
        raise RunError(f"{' '.join(command)} ended with status {child.returncode}:\n{text}")
    return text


def told(command: str, program: Program, *options: str) -> tuple[str, dict[str, Any]]:
    """Return what a command of firsttouch prints about a program, and its JSON."""
    with tempfile.TemporaryDirectory(prefix="firsttouch-") as folder:
        file = Path(folder, "told.json")
        words = [sys.executable, "-m", "firsttouch", command, "--json", str(file), *options, program.path.name]
        text = on_terminal(words, program.path.parent)
        return text, json.loads(file.read_text("utf-8"))


#: What is kept of the JSON. The rest is on the page as text, or names paths of the machine.
_ADVICE = ("advice", "gain_seconds", "gain_share", "processor", "kernel_seconds", "allocations", "peak_in_use")
_LINE = ("line", "count", "bytes", "faults", "seconds", "avoidable")
_COMPARED = ("started", "seconds", "rounds", "advice", "noise", "contenders", "cautions", "notes")


def record(program: Program, budget: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Run everything. Returns the machine, and the record of the program."""
    advised, advice = told("advise", program)
    compared, comparison = told("compare", program, "--budget", budget)
    lines = [{key: line[key] for key in _LINE} | {"file": Path(line["file"]).name} for line in advice["lines"][:10]]
    return comparison["machine"], {
        "date": date.today().isoformat(),
        "budget": budget,
        "versions": {package: version(package) for package in program.packages},
        "advise": {"text": advised, "lines": lines} | {key: advice[key] for key in _ADVICE},
        "compare": {"text": compared} | {key: comparison[key] for key in _COMPARED},
    }
