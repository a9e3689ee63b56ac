"""`make wheels`: what a changed source is built from."""

import os
import shutil
import time
from pathlib import Path

import pytest

pytest.importorskip("elftools")

from wheels import build


def test_cargo_sees_that_a_source_is_newer_than_what_it_built(tmp_path: Path) -> None:
    source = tmp_path / "packed" / "firsttouch-0" / "src" / "lib.rs"
    source.parent.mkdir(parents=True)
    source.touch()
    os.utime(source, (1153704088, 1153704088))  # as maturin does
    archive = shutil.make_archive(str(tmp_path / "firsttouch-0"), "gztar", tmp_path / "packed")
    began = time.time()
    tree = build.unpacked(Path(archive), tmp_path / "tree")
    assert (tree / "src" / "lib.rs").stat().st_mtime >= began - 1
