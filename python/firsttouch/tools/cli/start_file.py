"""Whether an interpreter started from here will run the line in firsttouch_start.pth."""

from __future__ import annotations

import os
import site
import sys

from firsttouch.tools.cli.usage import BadUsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

_LINE = "_firsttouch_start"
_PROBE = f"import sys; sys.exit({_LINE!r} not in sys.modules)"


def check(interpreter: Sequence[str], of: str = "run") -> None:
    """Refuse, with what to do, where the program would start without us; `of` is the command that asks."""
    if sys.flags.no_site:
        raise BadUsageError(f"{of}: python -S skips the file that starts firsttouch; leave -S out")
    if sys.flags.ignore_environment:
        option = "-I" if sys.flags.isolated else "-E"
        raise BadUsageError(f"{of}: python {option} ignores the variable that starts firsttouch; leave {option} out")
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
        names = [name for name in os.listdir(folder) if "firsttouch" in name and name.endswith(".pth")]
        return any(_LINE in _text(os.path.join(folder, name)) for name in names)
    except (OSError, ValueError):
        return False


def _text(file: str) -> str:
    with open(file, encoding="utf-8") as text:
        return text.read()


def _runs(interpreter: Sequence[str]) -> bool:
    """Ask an interpreter: a sitecustomize may have added folders that only it knows."""
    import subprocess

    environment = {**os.environ, "FIRSTTOUCH_RUN": "{}"}
    probe = subprocess.run(
        [*interpreter, "-P", "-c", _PROBE],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return probe.returncode == 0
