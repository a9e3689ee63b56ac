"""No public name loads a module or reads a file of the package: they work in a chroot, and where its files are gone."""

import os
from pathlib import Path

import pytest

from tests.programs import run

#: All names in one process: what the first would load, the second would find.
PROGRAM = """
import contextlib, os, sys
from tests.memory_out.operations import OPERATIONS
before = set(sys.modules)
{away}
for operation in OPERATIONS.values():
    with contextlib.suppress(OSError, MemoryError):  # what needs a file of the system
        operation()
new = {{name for name in set(sys.modules) - before if not name.startswith("numpy")}}
assert not new, new
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may enter a chroot")
def test_every_name_after_a_chroot(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    run(PROGRAM.format(away=f"os.chroot({str(tmp_path)!r}); os.chdir('/')"))


def test_every_name_without_the_package_s_files() -> None:
    run(PROGRAM.format(away="sys.meta_path.clear(); sys.path.clear(); sys.path_hooks.clear()"))
