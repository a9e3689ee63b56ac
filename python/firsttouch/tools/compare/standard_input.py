"""What every run reads: the same bytes, or nothing."""

from __future__ import annotations

import os
import select
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

_PATIENCE = 2.0


def source(folder: Path, waiting: Callable[[], None]) -> str:
    """A file with what stands on our standard input, read once; the null device where that is a terminal.

    `waiting` is called when nothing has come for two seconds: whoever feeds a pipe may never mean to.
    """
    try:
        kind = os.fstat(0).st_mode
    except OSError:  # it was closed
        return os.devnull
    if os.isatty(0):
        return os.devnull
    if stat.S_ISCHR(kind):
        return os.readlink("/proc/self/fd/0") if os.path.exists("/proc/self/fd/0") else os.devnull
    if not stat.S_ISREG(kind) and not select.select([0], [], [], _PATIENCE)[0]:
        waiting()
    kept = folder / "stdin"
    with open(0, "rb", closefd=False) as incoming, kept.open("wb") as file:
        shutil.copyfileobj(incoming, file)
    return str(kept)
