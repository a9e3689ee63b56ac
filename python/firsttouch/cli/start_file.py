"""Whether an interpreter started from here will run the line in firsttouch_start.pth."""

import os
import site
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from firsttouch.cli.parser import BadUsageError

_LINE = "_firsttouch_start"
_PROBE = f"import sys; sys.exit({_LINE!r} not in sys.modules)"


def check(interpreter: Sequence[str], of: str = "run") -> None:
    """Refuse, with what to do, where the program would start without us; `of` is the command that asks."""
    if sys.flags.no_site:
        raise BadUsageError(f"{of}: python -S skips the file that starts firsttouch; leave -S out")
    if not any(_stands_in(folder) for folder in _site_folders()) and not _runs(interpreter):
        raise BadUsageError(
            f"{of}: no firsttouch_start.pth in this Python's site-packages, so programs would start without"
            f" firsttouch; install it there: {sys.executable} -m pip install firsttouch"
        )


def _site_folders() -> list[str]:
    folders = list(site.getsitepackages())
    if site.ENABLE_USER_SITE:
        folders.append(site.getusersitepackages())
    return folders


def _stands_in(folder: str) -> bool:
    try:
        return any(_LINE in file.read_text("utf-8") for file in Path(folder).glob("*firsttouch*.pth"))
    except (OSError, ValueError):
        return False


def _runs(interpreter: Sequence[str]) -> bool:
    """Ask an interpreter: a sitecustomize may have added folders that only it knows."""
    environment = {**os.environ, "FIRSTTOUCH_RUN": "{}"}
    probe = subprocess.run(
        [*interpreter, "-c", _PROBE],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return probe.returncode == 0
