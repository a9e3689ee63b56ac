"""Running a machine to its end."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def boot(command: Sequence[str], log: Path, patience: float) -> str:
    """What a machine printed until it was off, or until `patience` seconds had passed; `log` has it meanwhile."""
    late = ""
    with log.open("wb") as output:
        try:
            subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=patience,
                check=False,
            )
        except subprocess.TimeoutExpired:
            late = f"\nnot off after {patience} s\n"
    return log.read_text(errors="replace").replace("\r", "") + late
